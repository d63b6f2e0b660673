// The audit report: views, cards, the detail, marks.

const CARD = { wide: 148, gap: 12, picture: 112, height: 188 };
const MOST_CHOICES = 30;
const cardRows = new Rows(byId('cards'));
const marks = new Marks(`prep.audit:${DATA.head.key}`, mark => mark === 1, () => { renderMarks(); refreshCards(); });
let found = [];
let columns = 1;
let at = -1;
let seen = [];
let openAt = -1;
const unfolded = new Set();

function codesText(image) {
  return image.found.map(f => f.code).join(' ');
}

function card(image, place) {
  const open = button(picture(image, CARD.picture), () => { at = place; openDetail(found, image); }, { class: 'pick', title: shown(image.path), 'data-at': place });
  const worst = image.found.length ? severityOf(image.found[0].code) : '';
  open.append(
    el('span', { class: 'name' }, elided(shown(fileName(image.path)), 19)),
    el('span', { class: 'where' }, [image.label, image.split].filter(Boolean).map(shown).join(' · ')),
    el('span', { class: `codes ${worst}` }, codesText(image)));
  const tick = button('', () => toggle(image), { class: 'tick', 'aria-label': `Mark ${shown(fileName(image.path))}`, tabindex: -1 });
  const cell = el('div', { role: 'listitem', 'aria-setsize': found.length, 'aria-posinset': place + 1, 'data-at': place }, open, tick);
  cell.style.height = `${CARD.height}px`;
  dress(cell, image, place);
  return cell;
}

function dress(cell, image, place) {
  const marked = Boolean(marks.get(image.path));
  cell.className = 'cell' + (place === at ? ' at' : '') + (marked ? ' marked' : '');
  cell.lastChild.setAttribute('aria-pressed', String(marked));
}

function refreshCards() {
  for (const cell of byId('cards').querySelectorAll('.cell')) dress(cell, found[cell.dataset.at], Number(cell.dataset.at));
}

function cardRow(row) {
  const line = el('div', { class: 'cards', role: 'none' });
  line.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  found.slice(row * columns, (row + 1) * columns).forEach((image, i) => line.append(card(image, row * columns + i)));
  return line;
}

function layCards() {
  const width = byId('cards').clientWidth;
  columns = Math.max(1, Math.floor((width + CARD.gap) / (CARD.wide + CARD.gap)));
  const rows = [];
  for (let row = 0; row * columns < found.length; row++) rows.push({ height: CARD.height + CARD.gap, draw: () => cardRow(row) });
  cardRows.set(rows);
}

function facet(title, name, label) {
  const all = choices(name);
  const group = el('div', { class: 'facet-group', role: 'group', 'aria-label': title }, el('h2', {}, title));
  const some = unfolded.has(name) ? all : all.filter(([value], i) => i < MOST_CHOICES || value === filter[name]);
  for (const [value, n] of some) {
    const on = filter[name] === value;
    group.append(el('button', {
      type: 'button', class: 'facet', 'aria-pressed': String(on), 'data-key': `${name}:${value}`, title: label(value),
      onclick: () => go({ [name]: on ? NONE[name] : value }),
    }, el('span', {}, label(value)), el('span', { class: 'n' }, n.toLocaleString('en'))));
  }
  if (some.length < all.length) group.append(button(`${all.length - some.length} more`, () => { unfolded.add(name); renderFacets(); }, { class: 'quiet' }));
  return group;
}

function renderFacets() {
  const held = document.activeElement && document.activeElement.dataset.key;
  const named = value => value === 'none' ? 'No finding' : FINDINGS.has(value) ? `${value} ${FINDINGS.get(value).title}` : value;
  byId('facets').replaceChildren(
    facet('Finding', 'find', value => shown(named(value))),
    facet('Class', 'class', value => value === '' ? '(no label)' : shown(value)),
    facet('Split', 'split', value => value === '' ? '(no split)' : shown(value)));
  if (held) for (const b of byId('facets').querySelectorAll('button')) if (b.dataset.key === held) b.focus();
}

// Filters in force, each with its way out.
function renderChosen() {
  const pills = [];
  const pill = (text, change) => pills.push(button(`${text} ×`, () => go(change), { 'aria-label': `${text} × (take this filter back)` }));
  if (filter.find) pill(filter.find === 'none' ? 'No finding' : shown(filter.find.replace(/,/g, ' or ')), { find: '' });
  if (filter.class !== null) pill(shown(filter.class || '(no label)'), { class: null });
  if (filter.split !== null) pill(shown(filter.split || '(no split)'), { split: null });
  if (filter.q) pill(`“${shown(filter.q)}”`, { q: '' });
  if (filter.set !== null) pill(`set ${filter.set + 1}`, { set: null });
  if (filter.marked) pill('marked', { marked: false });
  byId('chosen').replaceChildren(...pills);
}

function renderImages() {
  found = sorted(DATA.images.filter(image => fits(image)));
  at = Math.min(at, found.length - 1);
  renderFacets();
  renderChosen();
  if (byId('search').value !== filter.q) byId('search').value = filter.q;
  byId('sort').value = filter.sort;
  byId('image-status').textContent = `${found.length.toLocaleString('en')} of ${count(DATA.images.length, 'image')}`;
  byId('nothing').hidden = found.length > 0;
  byId('mark-all').disabled = !found.length;
  byId('mark-all').textContent = `Mark all ${found.length.toLocaleString('en')}`;
  layCards();
}

function render() {
  for (const view of VIEWS) byId(view).classList.toggle('on', view === filter.view);
  for (const link of document.querySelectorAll('.bar nav a')) {
    if (link.hash === `#${filter.view}`) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  if (filter.view === 'images') renderImages();
  if (filter.view === 'sets') renderSets();
}

function renderMarks() {
  byId('marks').hidden = marks.map.size === 0;
  byId('marks-count').textContent = `${marks.map.size.toLocaleString('en')} marked`;
}

function toggle(image) {
  marks.set([image.path], marks.get(image.path) ? null : 1);
  if (byId('detail').open) renderDetail();
}

function listText() {
  return marks.sorted().map(([path]) => path + '\n').join('');
}

function move(step) {
  if (byId('detail').open) return openDetail(seen, seen[Math.max(0, Math.min(seen.length - 1, openAt + step))]);
  if (filter.view !== 'images' || !found.length) return false;
  at = Math.max(0, Math.min(found.length - 1, at + step));
  focusCard();
}

function focusCard() {
  if (at < 0) return;
  cardRows.show(Math.floor(at / columns));
  refreshCards();
  const open = byId('cards').querySelector(`.pick[data-at="${at}"]`);
  if (open) open.focus({ preventScroll: true });
}

function openDetail(images, image) {
  seen = images;
  openAt = images.indexOf(image);
  renderDetail();
}

function foundBlock({ code, evidence }) {
  const finding = FINDINGS.get(code);
  return el('div', { class: `finding ${severityOf(code)}` },
    el('b', {}, `${code} ${finding ? shown(finding.title) : ''}`),
    evidence ? el('div', {}, shown(evidence)) : null,
    finding && finding.advice ? el('div', { class: 'note' }, shown(finding.advice)) : null);
}

// The other members of a set; the same picture under another label is what people look for here.
function twinBlock(set, setAt) {
  const members = set.members.map(m => DATA.images[m]);
  const others = members.filter(image => image !== seen[openAt]);
  const twins = others.slice(0, 3).map(image => {
    const open = button(picture(image), () => openDetail(members, image), { title: shown(image.path) });
    const text = [image.label, image.split].filter(Boolean).map(shown).join(' · ');
    open.append(el('span', {}, text || elided(shown(fileName(image.path)), 14)));
    return open;
  });
  const all = () => { byId('detail').close(); go({ ...NONE, view: 'images', set: setAt }); };
  if (others.length > 3) twins.push(button(`+${others.length - 3} more`, all, { class: 'more' }));
  return el('div', {}, el('p', { class: 'note' }, `${shown(set.tier)}: ${count(others.length, 'other image')}`), el('div', { class: 'twins' }, ...twins));
}

function renderDetail() {
  const image = seen[openAt];
  const marked = Boolean(marks.get(image.path));
  const scores = DATA.scores.map((name, i) => [name, image.scores && image.scores[i] !== null ? Number(image.scores[i].toPrecision(4)) : null]);
  const info = el('div', { class: 'info' },
    el('div', {}, el('h2', { id: 'detail-name' }, shown(fileName(image.path))), el('p', { class: 'note path' }, shown(image.path))),
    el('div', { class: 'actions' },
      button('Previous', () => move(-1), { 'data-key': 'previous', disabled: openAt === 0 }),
      button('Next', () => move(1), { 'data-key': 'next', disabled: openAt === seen.length - 1 }),
      button(marked ? 'Marked ✓' : 'Mark', () => toggle(image), { 'data-key': 'mark', 'aria-pressed': String(marked), class: marked ? 'strong' : null }),
      el('small', {}, `${(openAt + 1).toLocaleString('en')} of ${seen.length.toLocaleString('en')}`)),
    ...image.found.map(foundBlock),
    ...image.sets.slice(0, 3).map(set => twinBlock(DATA.sets[set], set)),
    facts([
      ['class', image.label], ['split', image.split], ['group', image.group], ['fault', image.fault],
      ['size', image.width ? `${image.width} × ${image.height}` : ''], ['file', size(image.bytes)],
      ['format', [image.format, image.mode].filter(Boolean).join(', ')], ['notes', (image.notes || []).join(', ')], ...scores,
    ]),
    el('div', { class: 'actions' },
      button('Copy path', () => copy(image.path, 'the path'), { 'data-key': 'copy' }),
      openOriginal(image, DATA.head.root), button('Close', () => byId('detail').close(), { 'data-key': 'close' })));
  fillDialog(byId('detail'), el('div', { class: 'view' }, largePicture(image, DATA.head.root), info));
}

// Takes the filters back; without any, back to the overview.
function leave() {
  if (byId('detail').open) return false;
  const { view, sort, ...rest } = NONE;
  const filtered = Object.keys(rest).some(name => filter[name] !== NONE[name]);
  go(filtered ? rest : { view });
}

const KEYS = {
  j: () => move(1), k: () => move(-1),
  ArrowRight: () => move(1), ArrowLeft: () => move(-1),
  ArrowDown: () => byId('detail').open ? false : move(columns), ArrowUp: () => byId('detail').open ? false : move(-columns),
  // On a button the key is the button's.
  Enter: event => event.target.tagName === 'BUTTON' || at < 0 || filter.view !== 'images' || byId('detail').open ? false : openDetail(found, found[at]),
  x: () => byId('detail').open ? toggle(seen[openAt]) : filter.view === 'images' && found[at] ? toggle(found[at]) : false,
  c: () => copy(listText(), count(marks.map.size, 'path')),
  s: () => marks.map.size ? saveFile('list.txt', listText()) : say('Nothing is marked'),
  '/': () => { if (byId('detail').open) return false; if (filter.view !== 'images') go({ ...NONE, view: 'images' }); byId('search').focus(); },
  '?': () => byId('help').showModal(),
  Escape: leave,
  1: () => go({ view: 'overview' }), 2: () => go({ ...NONE, view: 'sets' }), 3: () => go({ view: 'images' }),
};

function prepareImages() {
  for (const [value, name] of [['', 'worst first'], ['path', 'path'], ['size', 'size'], ...DATA.scores.map(s => [s, s])]) {
    byId('sort').append(el('option', { value }, name));
  }
  byId('sort').onchange = () => go({ sort: byId('sort').value });
  onSearch(byId('search'), q => go({ q }, true), () => move(at < 0 ? 1 : 0));
  byId('mark-all').onclick = () => { marks.set(found.map(image => image.path), 1); say(`Marked ${count(found.length, 'image')}`); };
  if (innerWidth < 860) byId('filters').open = false;
  onWidth(byId('cards'), () => { if (filter.view === 'images') layCards(); });
  onWidth(byId('set-rows'), () => { if (filter.view === 'sets') renderSets(); });
}

function prepareMarks() {
  showUses(DATA.head.uses);
  byId('marks-save').onclick = KEYS.s;
  byId('marks-copy').onclick = KEYS.c;
  byId('marks-show').onclick = () => go({ ...NONE, view: 'images', marked: true });
  byId('marks-clear').onclick = () => { if (confirm('Take all marks back?')) marks.set([...marks.map.keys()], null); };
  renderMarks();
}

function start() {
  prepareHead();
  joinFindings();
  prepareSets();
  prepareImages();
  prepareMarks();
  onKeys(KEYS);
  for (const link of document.querySelectorAll('.bar nav a')) {
    link.onclick = event => { event.preventDefault(); go({ ...NONE, view: link.hash.slice(1) }); scrollTo(0, 0); };
  }
  for (const to of document.querySelectorAll('[data-find]')) {
    to.onclick = () => { go({ ...NONE, view: to.dataset.view, find: to.dataset.find }); scrollTo(0, 0); };
  }
  byId('detail').addEventListener('close', () => { if (seen === found) { at = openAt; focusCard(); } });
  const follow = () => { readAddress(); render(); };
  addEventListener('popstate', follow);
  follow();
  performance.mark('prep-ready');
}

start();

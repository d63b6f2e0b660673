// The sheet page: sections of cells, marks by keys, fixes.csv.

const GAP = 12;
const CAPTION = 62;
const HEADING = 60;
const rows = new Rows(byId('cells'));
const CELLS = DATA.sections.flatMap((section, at) => section.cells.map(cell => Object.assign(cell, { section: at })));
const HERE = new Set(CELLS.map(cell => cell.path));
let found = [];
let rowOf = [];
let headings = [];
let at = -1;
let query = '';
let onlyMarked = false;
let lastLabel = null;

const STAMPS = { relabel: mark => `→ ${shown(mark.label)}`, doubtful: () => 'doubtful', exclude: () => 'junk' };
const marks = new Marks(`prep.sheet:${DATA.key}`, mark => Object.hasOwn(STAMPS, mark.action), () => { renderMarks(); refresh(); });

function dress(element, cell, place) {
  const mark = marks.get(cell.path);
  element.className = ['cell', place === at && 'at', cell.findings && 'flagged', mark && 'marked', mark && mark.action === 'exclude' && 'out'].filter(Boolean).join(' ');
  const stamp = element.querySelector('.stamp');
  stamp.hidden = !mark;
  stamp.className = `stamp ${mark ? mark.action : ''}`;
  stamp.textContent = mark ? STAMPS[mark.action](mark) : '';
}

function drawCell(place, side) {
  const cell = CELLS[place];
  const open = button(picture(cell, side), () => { at = place; openDetail(); }, { class: 'pick', title: shown(cell.path), 'data-at': place });
  open.append(
    el('span', { class: 'name' }, elided(shown(fileName(cell.path)), Math.floor(side / 8))),
    el('span', { class: 'where' }, [cell.label, ...(cell.caption || [])].filter(Boolean).map(shown).join(' · ')),
    el('span', { class: 'codes error' }, (cell.findings || []).map(f => `${f[0]} ${shown(f[1])}`).join(', ')));
  const element = el('div', { role: 'listitem', 'data-at': place }, open, el('span', { class: 'stamp' }));
  element.style.height = `${side + CAPTION}px`;
  dress(element, cell, place);
  return element;
}

function drawRow(places, side) {
  const line = el('div', { class: 'cards', role: 'none' }, ...places.map(place => drawCell(place, side)));
  line.style.gridAutoColumns = `${side}px`;
  return line;
}

function heading(section, n) {
  const text = n === section.cells.length ? section.note : `${n} of ${section.cells.length} here · ${section.note}`;
  return el('div', { role: 'listitem' }, el('h2', {}, el('span', {}, shown(section.title)), el('small', {}, shown(text))));
}

function fits(cell) {
  return (!query || cell.path.toLowerCase().includes(query)) && (!onlyMarked || marks.get(cell.path));
}

// Lays the sections out: a heading, then rows of as many cells as fit or as the section asks for.
function lay() {
  const width = byId('cells').clientWidth;
  const list = [];
  let first = 0;
  found = [];
  rowOf = [];
  headings = [];
  for (const section of DATA.sections) {
    const places = section.cells.map((_, i) => first + i).filter(place => fits(CELLS[place]));
    first += section.cells.length;
    if (!places.length && (query || onlyMarked)) { headings.push(null); continue; }
    // Two beside each other on a telephone. Columns that a sheet asks for are kept: the cells get smaller instead.
    const fit = Math.max(width < 700 ? 2 : 1, Math.floor((width + GAP) / (DATA.cell + GAP)));
    const wanted = section.columns || fit;
    const side = Math.max(96, Math.min(DATA.cell * 1.3, Math.floor((width + GAP) / wanted) - GAP));
    headings.push(list.length);
    list.push({ height: HEADING, draw: () => heading(section, places.length) });
    for (let i = 0; i < places.length; i += wanted) {
      const some = places.slice(i, i + wanted);
      for (const place of some) { rowOf[place] = list.length; found.push(place); }
      list.push({ height: side + CAPTION + GAP, draw: () => drawRow(some, side) });
    }
  }
  rows.set(list);
  byId('nothing').hidden = found.length > 0 || !(query || onlyMarked);
  byId('status').textContent = query || onlyMarked ? `${found.length.toLocaleString('en')} of ${count(CELLS.length, 'image')}` : '';
}

function refresh() {
  for (const cell of byId('cells').querySelectorAll('.cell')) dress(cell, CELLS[cell.dataset.at], Number(cell.dataset.at));
  if (byId('detail').open) openDetail();
}

function focusCell() {
  if (rowOf[at] === undefined) return;
  rows.show(rowOf[at]);
  refresh();
  const open = byId('cells').querySelector(`.pick[data-at="${at}"]`);
  if (open && !byId('detail').open) open.focus({ preventScroll: true });
}

function move(step) {
  if (!found.length) return;
  const now = found.indexOf(at);
  at = found[Math.max(0, Math.min(found.length - 1, now + step))];
  if (byId('detail').open) openDetail();
  focusCell();
}

// To the first image of the next or previous sheet.
function moveSheet(step) {
  const section = (at < 0 ? -1 : CELLS[at].section) + step;
  const to = found.find(place => step > 0 ? CELLS[place].section >= section : CELLS[place].section === Math.max(0, section));
  if (to === undefined) return;
  at = to;
  rows.show(headings[CELLS[to].section]);
  focusCell();
}

// One row up or down: as many cells as the row of this one has.
function rowLength() {
  return at < 0 ? 1 : found.filter(place => rowOf[place] === rowOf[at]).length;
}

function mark(action, label, note) {
  const cell = CELLS[at];
  if (!cell) return say('Choose an image first: j');
  marks.set([cell.path], action && { action, label: label || '', was: cell.label || '', note: note || '' });
}

function relabel() {
  const cell = CELLS[at];
  if (!cell) return say('Choose an image first: j');
  const old = marks.get(cell.path);
  askLabel(cell, old, (label, note) => { lastLabel = label; mark('relabel', label, note); focusCell(); });
}

function again() {
  if (lastLabel === null) return relabel();
  const cell = CELLS[at];
  if (cell && cell.label === lastLabel) return say(`It is “${shown(lastLabel)}” already`);
  mark('relabel', lastLabel);
}

function fixesText() {
  const lines = marks.sorted().map(([path, m]) => [path, m.action, m.label, m.was, m.note].map(quoted).join(','));
  return ['path,action,label,was,note', ...lines].join('\n') + '\n';
}

function renderMarks() {
  const here = [...marks.map.keys()].filter(path => HERE.has(path)).length;
  const away = marks.map.size - here;
  byId('marks').hidden = marks.map.size === 0;
  byId('marks-count').textContent = `${here.toLocaleString('en')} marked` + (away ? `, ${away.toLocaleString('en')} on other sheets` : '');
  if (onlyMarked) lay();
}

function openDetail() {
  const cell = CELLS[at];
  const now = found.indexOf(at);
  const m = marks.get(cell.path);
  const choice = (text, action, act) => button(text, act, { 'data-key': action, 'aria-pressed': String(Boolean(m && m.action === action)), class: m && m.action === action ? 'strong' : null });
  const info = el('div', { class: 'info' },
    el('div', {}, el('h2', { id: 'detail-name' }, shown(fileName(cell.path))), el('p', { class: 'note path' }, shown(cell.path))),
    el('div', { class: 'actions' },
      button('Previous', () => move(-1), { 'data-key': 'previous', disabled: now <= 0 }),
      button('Next', () => move(1), { 'data-key': 'next', disabled: now === found.length - 1 }),
      el('small', {}, `${(now + 1).toLocaleString('en')} of ${found.length.toLocaleString('en')}`)),
    el('div', { class: 'actions', role: 'group', 'aria-label': 'Mark' },
      choice(m && m.action === 'relabel' ? `Is ${shown(m.label)}` : 'Wrong label', 'relabel', relabel),
      choice('Doubtful', 'doubtful', () => mark('doubtful')), choice('Junk', 'exclude', () => mark('exclude')),
      m ? button('Take back', () => mark(null), { 'data-key': 'back' }) : null),
    m && m.note ? el('p', { class: 'note' }, shown(m.note)) : null,
    ...(cell.findings || []).map(([code, text]) => el('div', { class: 'finding error' }, el('b', {}, code), ` ${shown(text)}`)),
    facts([['class', cell.label], ['split', cell.split], ['size', cell.width ? `${cell.width} × ${cell.height}` : ''],
      ['format', cell.format], ['fault', cell.fault], ['caption', (cell.caption || []).join(' · ')]]),
    el('div', { class: 'actions' }, button('Copy path', () => copy(cell.path, 'the path'), { 'data-key': 'copy' }),
      openOriginal(cell, DATA.root), button('Close', () => byId('detail').close(), { 'data-key': 'close' })));
  fillDialog(byId('detail'), el('div', { class: 'view' }, largePicture(cell, DATA.root), info));
}

const KEYS = {
  j: () => move(1), k: () => move(-1), J: () => moveSheet(1), K: () => moveSheet(-1),
  ArrowRight: () => move(1), ArrowLeft: () => move(-1), ArrowDown: () => move(rowLength()), ArrowUp: () => move(-rowLength()),
  Enter: event => event.target.tagName === 'BUTTON' || at < 0 ? false : openDetail(),
  m: relabel, r: again, d: () => mark('doubtful'), x: () => mark('exclude'), u: () => mark(null),
  s: () => marks.map.size ? saveFile('fixes.csv', fixesText()) : say('Nothing is marked'),
  '/': () => byId('detail').open ? false : byId('search').focus(),
  '?': () => byId('help').showModal(),
};

function prepareJump() {
  byId('jump').append(el('option', { value: '' }, 'Go to a sheet'));
  DATA.sections.forEach((section, i) => byId('jump').append(el('option', { value: i }, elided(shown(section.title), 40))));
  byId('jump').onchange = () => {
    const row = headings[byId('jump').value];
    byId('jump').value = '';
    if (typeof row === 'number') scrollBy(0, byId('cells').getBoundingClientRect().top + rows.tops[row] - 60);
  };
}

function prepareMarks() {
  showUses(DATA.uses);
  byId('marks-save').onclick = KEYS.s;
  byId('marks-show').onclick = () => {
    onlyMarked = !onlyMarked;
    byId('marks-show').setAttribute('aria-pressed', String(onlyMarked));
    lay();
  };
  byId('marks-clear').onclick = () => {
    if (!confirm('Take all marks of this data back?')) return;
    onlyMarked = false;
    marks.set([...marks.map.keys()], null);
    lay();
  };
  renderMarks();
}

function start() {
  prepareHead();
  prepareJump();
  prepareLabel();
  prepareMarks();
  onSearch(byId('search'), text => { query = text.toLowerCase(); lay(); }, () => move(1));
  onKeys(KEYS);
  byId('detail').addEventListener('close', focusCell);
  onWidth(byId('cells'), lay);
  lay();
  performance.mark('prep-ready');
}

start();

// Duplicate sets and leaks: the members of each beside each other, with what differs between them.

const SET_HEIGHT = 282;
const MEMBER = 158;
// So that three members fit.
const SET_WIDTH = 540;
const setRows = new Rows(byId('set-rows'));

function differs(set, field) {
  return new Set(set.members.map(at => DATA.images[at][field]).filter(value => value !== undefined)).size > 1;
}

function prepareSets() {
  for (const set of DATA.sets) Object.assign(set, { conflict: differs(set, 'label'), leak: differs(set, 'split') });
}

// What can be seen even where no finding says so, because its code was not selected.
const PILLS = {
  conflict: ['Different labels', set => set.conflict, 'D004'],
  leak: ['Across splits', set => set.leak, 'D005'],
};

function setFits(set, find) {
  if (!find) return true;
  return PILLS[find] ? PILLS[find][1](set) : find.split(',').some(code => set.codes.includes(code));
}

function setPills() {
  const codes = new Set(DATA.sets.flatMap(set => set.codes));
  const known = [...codes].sort().map(code => [code, FINDINGS.has(code) ? `${code} ${FINDINGS.get(code).title}` : code]);
  const unsaid = Object.entries(PILLS).filter(([, [, , code]]) => !codes.has(code)).map(([key, [name]]) => [key, name]);
  const all = [['', 'All'], ...unsaid, ...known.sort((a, b) => rankOf(a[0]) - rankOf(b[0]))];
  const pills = all.map(([find, name]) => {
    const n = DATA.sets.filter(set => setFits(set, find)).length;
    return n || !find ? button(`${name} `, () => go({ find }), { 'aria-pressed': String(filter.find === find), 'data-n': n }) : null;
  }).filter(Boolean);
  for (const pill of pills) pill.append(el('small', {}, pill.dataset.n));
  byId('set-pills').replaceChildren(...pills);
}

function tag(text, kind, odd) {
  return text === undefined ? null : el('span', { class: `tag ${kind} ${odd ? 'differs' : ''}`, title: shown(text) }, shown(text));
}

function member(set, at) {
  const image = DATA.images[at];
  const open = button(picture(image), () => openDetail(set.members.map(m => DATA.images[m]), image), { class: 'pick', title: shown(image.path) });
  open.append(
    el('span', { class: 'name' }, elided(shown(fileName(image.path)), 20)),
    el('span', { class: 'where' }, image.width ? `${image.width}×${image.height}` : ''),
    el('span', { class: 'tags' }, tag(image.label, 'label', set.conflict), tag(image.split, 'split', set.leak)));
  return el('div', { class: 'member cell' + (marks.get(image.path) ? ' marked' : '') }, open);
}

// One of each label and split first: what differs must not hide behind those that agree.
function tellingFirst(set) {
  const seenBefore = new Set();
  const isNew = at => {
    const key = JSON.stringify([DATA.images[at].label, DATA.images[at].split]);
    return !seenBefore.has(key) && Boolean(seenBefore.add(key));
  };
  const telling = set.members.filter(isNew);
  return [...telling, ...set.members.filter(at => !telling.includes(at))];
}

function setBox(set, at, width) {
  const all = set.members.length * MEMBER - 12 <= width - 34;
  const fit = Math.max(1, Math.floor((width - 34 - 92) / MEMBER));
  const some = all ? set.members : tellingFirst(set).slice(0, fit);
  const members = el('div', { class: 'members' }, ...some.map(m => member(set, m)));
  const open = () => go({ ...NONE, view: 'images', set: at });
  if (!all) members.append(button(`+${set.members.length - fit} more`, open, { class: 'more' }));
  const box = el('div', { class: 'set' },
    el('div', { class: 'set-head' },
      el('b', {}, shown(set.tier)), el('span', { class: 'note' }, shown(set.evidence)),
      button(`${count(set.members.length, 'image')} →`, open, { class: 'quiet' })),
    el('p', { class: 'set-why' },
      set.conflict ? el('span', { class: 'badge error' }, 'different labels') : null,
      set.leak ? el('span', { class: 'badge error' }, 'across splits') : null,
      el('span', { class: 'code' }, set.codes.join(' '))),
    members);
  box.style.height = `${SET_HEIGHT - 12}px`;
  return box;
}

function renderSets() {
  setPills();
  const found = DATA.sets.map((set, at) => [set, at]).filter(([set]) => setFits(set, filter.find));
  byId('set-status').textContent = `${found.length.toLocaleString('en')} of ${count(DATA.sets.length, 'set')}`;
  const width = byId('set-rows').clientWidth;
  const beside = Math.max(1, Math.floor((width + 12) / SET_WIDTH));
  const each = Math.floor((width + 12) / beside) - 12;
  const draw = some => {
    const line = el('div', { class: 'sets' }, ...some.map(([set, at]) => setBox(set, at, each)));
    line.style.gridTemplateColumns = `repeat(${beside}, minmax(0, 1fr))`;
    return line;
  };
  const rows = [];
  for (let i = 0; i < found.length; i += beside) rows.push({ height: SET_HEIGHT, draw: () => draw(found.slice(i, i + beside)) });
  setRows.set(rows);
}

// What is looked at: the filter, its spelling in the address, and how many images each choice would leave.

const VIEWS = ['overview', 'sets', 'images'];
const NONE = { view: 'overview', find: '', class: null, split: null, q: '', set: null, marked: false, sort: '' };
let filter = { ...NONE };

const FINDINGS = new Map(DATA.findings.map((finding, rank) => [finding.code, { ...finding, rank }]));

// Gives each image its findings, worst first, and its sets.
function joinFindings() {
  for (const image of DATA.images) Object.assign(image, { found: [], sets: [], lower: image.path.toLowerCase() });
  for (const finding of DATA.findings) {
    for (const item of finding.items) {
      const image = DATA.images[item.image];
      if (image) image.found.push({ code: finding.code, evidence: item.evidence });
    }
  }
  DATA.sets.forEach((set, at) => {
    for (const member of set.members) {
      const image = DATA.images[member];
      image.sets.push(at);
      for (const code of set.codes) {
        if (!image.found.some(f => f.code === code)) image.found.push({ code, evidence: set.evidence });
      }
    }
  });
  for (const image of DATA.images) image.found.sort((a, b) => rankOf(a.code) - rankOf(b.code));
}

function rankOf(code) {
  return FINDINGS.has(code) ? FINDINGS.get(code).rank : FINDINGS.size;
}

function severityOf(code) {
  return FINDINGS.has(code) ? FINDINGS.get(code).severity : 'info';
}

const TESTS = {
  find: (image, f) => !f.find || (f.find === 'none' ? !image.found.length : image.found.some(x => f.codes.includes(x.code))),
  class: (image, f) => f.class === null || (image.label || '') === f.class,
  split: (image, f) => f.split === null || (image.split || '') === f.split,
  rest: (image, f) => (!f.lowerQ || image.lower.includes(f.lowerQ)) && (f.set === null || image.sets.includes(f.set))
    && (!f.marked || Boolean(marks.get(image.path))),
};

function fits(image, except) {
  for (const name in TESTS) if (name !== except && !TESTS[name](image, filter)) return false;
  return true;
}

function sorted(images) {
  const by = filter.sort;
  if (!by) return images;
  const key = by === 'path' ? i => i.path : by === 'size' ? i => i.width * i.height
    : i => i.scores ? i.scores[DATA.scores.indexOf(by)] : Infinity;
  const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
  return [...images].sort((a, b) => order(key(a), key(b)));
}

// The choices of a facet: value to number of images, given the other filters.
function choices(name) {
  const values = { find: i => i.found.length ? i.found.map(f => f.code) : ['none'], class: i => [i.label || ''], split: i => [i.split || ''] };
  const counts = new Map();
  for (const image of DATA.images) {
    if (!fits(image, name)) continue;
    for (const value of values[name](image)) counts.set(value, (counts.get(value) || 0) + 1);
  }
  if (filter[name] && !counts.has(filter[name]) && !filter[name].includes(',')) counts.set(filter[name], 0);
  const rank = name === 'find' ? rankOf : value => value;
  return [...counts].sort((a, b) => rank(a[0]) < rank(b[0]) ? -1 : 1);
}

function readAddress() {
  const [view, rest] = location.hash.slice(1).split(/&(.*)/s);
  const read = new URLSearchParams(rest || '');
  const set = Number.parseInt(read.get('set'), 10);
  settle({
    view: VIEWS.includes(view) ? view : 'overview', find: read.get('find') || '', class: read.get('class'),
    split: read.get('split'), q: read.get('q') || '', set: DATA.sets[set] ? set : null,
    marked: read.has('marked'), sort: read.get('sort') || '',
  });
}

function settle(next) {
  filter = { ...next, codes: next.find.split(','), lowerQ: next.q.toLowerCase() };
}

function writeAddress(replace) {
  const out = new URLSearchParams();
  for (const name of ['find', 'q', 'sort']) if (filter[name]) out.set(name, filter[name]);
  for (const name of ['class', 'split', 'set']) if (filter[name] !== null) out.set(name, filter[name]);
  if (filter.marked) out.set('marked', '1');
  const rest = out.toString();
  const hash = `#${filter.view}${rest ? `&${rest}` : ''}`;
  if (hash !== location.hash) history[replace ? 'replaceState' : 'pushState'](null, '', hash);
}

// Changes the filter, the address and the page.
function go(change, replace) {
  settle({ ...filter, ...change });
  writeAddress(replace);
  render();
}

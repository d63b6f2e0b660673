// Choosing the right label: a few letters, and the class is found.

const MOST_OFFERED = 8;
let offered = [];
let picked = 0;
let asking = null;

// Classes that begin with the text first, then those that hold it; a new one last.
function offers(text) {
  const lower = text.trim().toLowerCase();
  const begin = DATA.classes.filter(c => c.toLowerCase().startsWith(lower));
  const hold = DATA.classes.filter(c => !begin.includes(c) && c.toLowerCase().includes(lower));
  const exact = begin.filter(c => c === text.trim());
  const list = [...new Set([...exact, ...begin, ...hold])].filter(c => c !== asking.was).slice(0, MOST_OFFERED).map(label => ({ label }));
  const typed = text.trim();
  if (typed && !DATA.classes.includes(typed)) list.push({ label: typed, fresh: true });
  return list;
}

function renderOffers() {
  const list = byId('label-list');
  list.replaceChildren(...offered.map((offer, i) => el('li', {
    role: 'option', id: `label-${i}`, 'aria-selected': String(i === picked), onclick: () => { picked = i; takeLabel(); },
  }, el('span', {}, shown(offer.label)), offer.fresh ? el('small', {}, 'new class') : null)));
  byId('label-text').setAttribute('aria-activedescendant', offered[picked] ? `label-${picked}` : '');
  byId('label-take').disabled = !offered[picked];
}

function typed() {
  offered = offers(byId('label-text').value);
  // Enter alone must not give a label that nobody chose; where there is only one other class it can be no other.
  picked = byId('label-text').value.trim() || offered.length === 1 ? 0 : -1;
  renderOffers();
}

function takeLabel() {
  const offer = offered[picked];
  const then = asking && asking.then;
  if (!offer || !then) return;
  const note = byId('label-note').value.trim();
  asking = null;
  byId('label').close();
  then(offer.label, note);
}

// Asks for the right label of an image and hands it to `then` with the note.
function askLabel(cell, mark, then) {
  asking = { was: cell.label, then };
  byId('label-was').textContent = `${shown(fileName(cell.path))} is ${cell.label === undefined ? 'without a label' : `“${shown(cell.label)}”`}`;
  byId('label-text').value = '';
  byId('label-note').value = (mark && mark.note) || '';
  typed();
  byId('label').showModal();
  byId('label-text').focus();
}

function prepareLabel() {
  byId('label-text').addEventListener('input', typed);
  byId('label-text').addEventListener('keydown', event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !offered.length) return;
    event.preventDefault();
    picked = picked < 0 ? (step > 0 ? 0 : offered.length - 1) : (picked + step + offered.length) % offered.length;
    renderOffers();
  });
  byId('label-form').addEventListener('submit', event => { event.preventDefault(); takeLabel(); });
  byId('label-cancel').onclick = () => byId('label').close();
}

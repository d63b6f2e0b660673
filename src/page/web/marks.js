// Marks: kept by path in this browser, so that they outlive the page and belong to the data, not to the page.

class Marks {
  // `valid` tells a mark from what else may have come to be in the store; `changed` draws the page anew.
  constructor(place, valid, changed) {
    this.place = place;
    this.valid = valid;
    this.changed = changed;
    this.read();
    // Another tab with the same data.
    addEventListener('storage', event => {
      if (event.key !== this.place) return;
      this.read();
      changed();
    });
  }

  read() {
    this.map = new Map();
    try {
      for (const [path, mark] of JSON.parse(localStorage.getItem(this.place) || '[]')) {
        if (mark && this.valid(mark)) this.map.set(String(path), mark);
      }
    } catch {
      say('The marks of earlier visits cannot be read');
    }
  }

  get(path) { return this.map.get(path); }

  // Sets many at once; no mark takes the old one away.
  set(paths, mark) {
    for (const path of paths) {
      if (mark) this.map.set(path, mark); else this.map.delete(path);
    }
    try {
      localStorage.setItem(this.place, JSON.stringify([...this.map]));
    } catch {
      say('This browser does not keep the marks: save them before you leave');
    }
    this.changed();
  }

  // By path, whatever the order of marking.
  sorted() {
    const order = (a, b) => a < b ? -1 : a > b ? 1 : 0;
    return [...this.map].sort((a, b) => order(a[0], b[0]));
  }
}

function showUses(lines) {
  byId('marks-uses').replaceChildren(...lines.map(line => el('code', {}, shown(line))));
}

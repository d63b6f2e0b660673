// A long list of rows of which only those near the window exist.

class Rows {
  constructor(host) {
    this.host = host;
    this.rows = [];
    this.tops = [0];
    this.drawn = new Map();
    let due = false;
    const soon = () => {
      if (due) return;
      due = true;
      requestAnimationFrame(() => { due = false; this.draw(); });
    };
    addEventListener('scroll', soon, { passive: true });
    addEventListener('resize', soon);
    addEventListener('beforeprint', () => this.draw(true));
    addEventListener('afterprint', soon);
  }

  // Rows are {height, draw}: the height in px with the gap below it, and a function that makes the element.
  set(rows) {
    this.rows = rows;
    this.tops = [0];
    for (const row of rows) this.tops.push(this.tops[this.tops.length - 1] + row.height);
    this.host.style.height = `${this.tops[rows.length]}px`;
    this.host.replaceChildren();
    this.drawn.clear();
    this.draw();
  }

  // The first row whose end lies below `y`.
  at(y) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= y) low = middle + 1; else high = middle;
    }
    return low;
  }

  draw(all) {
    if (!this.host.offsetParent) return;
    const above = -this.host.getBoundingClientRect().top;
    const first = all ? 0 : this.at(above - 100);
    const last = all ? this.rows.length - 1 : Math.min(this.at(above + innerHeight + 100), this.rows.length - 1);
    for (const [row, element] of this.drawn) {
      if (row >= first && row <= last) continue;
      element.remove();
      this.drawn.delete(row);
    }
    for (let row = first; row <= last; row++) {
      if (!this.drawn.has(row)) this.place(row);
    }
  }

  place(row) {
    const element = this.rows[row].draw();
    element.style.top = `${this.tops[row]}px`;
    this.drawn.set(row, element);
    // In reading order, for the tab key and screen readers.
    const after = [...this.drawn.keys()].filter(other => other > row);
    this.host.insertBefore(element, after.length ? this.drawn.get(Math.min(...after)) : null);
  }

  // Scrolls as little as makes the row visible between the bars at top and bottom.
  show(row) {
    if (row >= this.rows.length) return;
    const top = this.host.getBoundingClientRect().top + this.tops[row];
    const low = innerHeight - 90 - this.rows[row].height;
    if (top < 64) scrollBy(0, top - 64);
    else if (top > low) scrollBy(0, Math.min(top - low, top - 64));
    this.draw();
  }
}

// Calls `then` when the width of `host` has changed.
function onWidth(host, then) {
  let width = 0;
  new ResizeObserver(() => {
    if (host.clientWidth === width) return;
    width = host.clientWidth;
    then();
  }).observe(host);
}

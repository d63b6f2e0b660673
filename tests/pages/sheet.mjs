// The sheet page of 2,000 images, in a real browser.
import { check, checkAxe, checkOpens, checkQuiet, done, downloaded, equal, figures, open, withBrowser, SHOTS } from './browser.mjs';

const HOSTILE = ['<img src=x onerror=window.owned=1>', '</script><script>window.owned=2</script>', "=cmd|' /C calc'!A0"];

async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

async function opens(browser) {
  const it = await open(browser, 'sheet.html');
  checkOpens(await figures(it), 'sheet.html');
  const places = new Set();
  const height = await it.page.evaluate(() => document.documentElement.scrollHeight);
  for (let y = 0; y < height; y += 600) {
    await it.page.evaluate(to => new Promise(done => { scrollTo(0, to); requestAnimationFrame(() => requestAnimationFrame(done)); }), y);
    for (const place of await it.page.$$eval('#cells .cell', all => all.map(c => c.dataset.at))) places.add(place);
  }
  equal(places.size, 1960, 'every image is drawn when it is scrolled to');
  await checkQuiet(it);
  await it.context.close();
}

// Reads a CSV file as RFC 4180 says.
function parsed(text) {
  const rows = [[]];
  const cell = /("(?:[^"]|"")*"|[^,\n"]*)(,|\n|$)/g;
  for (let m = cell.exec(text); m && m.index < text.length; m = cell.exec(text)) {
    rows[rows.length - 1].push(m[1].startsWith('"') ? m[1].slice(1, -1).replace(/""/g, '"') : m[1]);
    if (m[2] === '\n') rows.push([]);
  }
  return rows.filter(row => row.length);
}

async function marks(browser) {
  const it = await open(browser, 'sheet.html');
  const { page } = it;
  const cells = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent).sections.flatMap(s => s.cells));
  const want = new Map();
  const expect = (at, action, label, note) => want.set(cells[at].path, [cells[at].path, action, label || '', cells[at].label || '', note || '']);
  // A class by its first letters, with a note.
  await press(page, 'j', 'm');
  check(await page.isVisible('#label'), 'm asks for the label');
  check((await page.$$('#label-list li')).length > 4, 'it offers classes');
  await page.keyboard.type('powd');
  equal((await page.textContent('#label-list [aria-selected=true]')).trim(), 'powdery_mildew', 'a few letters find it');
  await page.fill('#label-note', 'a note, with "quotes"');
  await page.press('#label-note', 'Enter');
  expect(0, 'relabel', 'powdery_mildew', 'a note, with "quotes"');
  check(!(await page.isVisible('#label')), 'Enter takes it');
  equal(await page.textContent('#cells .cell[data-at="0"] .stamp'), '→ powdery_mildew', 'and it shows');
  // The same again, doubtful, junk; taken back.
  await press(page, 'j', 'r', 'j', 'd', 'j', 'x', 'j', 'x', 'u');
  expect(1, 'relabel', 'powdery_mildew');
  expect(2, 'doubtful');
  expect(3, 'exclude');
  // A class by the arrow keys, and one that is new.
  await press(page, 'j', 'm');
  const second = await page.textContent('#label-list li:nth-child(2) span');
  await press(page, 'Enter');
  check(await page.isVisible('#label'), 'Enter alone chooses nothing');
  await press(page, 'ArrowDown', 'ArrowDown', 'Enter');
  expect(5, 'relabel', second);
  await press(page, 'j', 'm');
  await page.keyboard.type('=new, class');
  check((await page.textContent('#label-list [aria-selected=true]')).includes('new class'), 'a new class is called so');
  await press(page, 'Enter', 'j', 'm', 'Escape');
  expect(6, 'relabel', '=new, class');
  // In the large view.
  await press(page, 'Enter');
  check(await page.isVisible('#detail'), 'Enter enlarges');
  await press(page, 'j', 'x', 'Escape');
  expect(8, 'exclude');
  equal(await page.textContent('#marks-count'), '7 marked', 'as many as were marked');
  const saved = await downloaded(page, () => page.click('#marks-save'));
  equal(saved.name, 'fixes.csv', 'its name');
  // A spreadsheet would run `=new, class`.
  check(saved.text.includes(`,"'=new, class",`), 'nothing in it is a formula');
  const rows = parsed(saved.text).map(row => row.map(cell => cell.replace(/^'(?='*[=+\-@])/, '')));
  equal(JSON.stringify(rows.shift()), '["path","action","label","was","note"]', 'the columns');
  equal(JSON.stringify(rows), JSON.stringify([...want.values()].sort((a, b) => a[0] < b[0] ? -1 : 1)), 'the file holds exactly what was marked');
  await page.reload();
  equal(await page.textContent('#marks-count'), '7 marked', 'marks outlive a visit');
  equal((await downloaded(page, () => page.keyboard.press('s'))).text, saved.text, 'and are saved the same');
  await page.click('#marks-show');
  equal(await page.textContent('#status'), '7 of 1,960 images', 'only the marked ones');
  await page.click('#marks-show');
  await page.click('#marks-clear');
  check(!(await page.isVisible('#marks')), 'all taken back');
  await checkQuiet(it);
  await it.context.close();
}

// Marks of the same data on another sheet, and what was never a mark.
async function strangers(browser) {
  const it = await open(browser, 'sheet.html');
  const { page } = it;
  await page.evaluate(() => localStorage.setItem('prep.sheet:page-data-test', JSON.stringify([
    ['elsewhere.jpg', { action: 'doubtful', label: '', was: 'rust', note: '' }], ['bad', { action: 'explode' }], ['worse', null], 7])));
  await page.reload();
  equal(await page.textContent('#marks-count'), '0 marked, 1 on other sheets', 'marks of other sheets are told apart');
  check((await downloaded(page, () => page.keyboard.press('s'))).text.includes('elsewhere.jpg,doubtful,,rust,\n'), 'and saved too');
  await it.context.close();
}

async function moves(browser) {
  const it = await open(browser, 'sheet.html');
  const { page } = it;
  const place = () => page.evaluate(() => document.querySelector('.cell.at')?.dataset.at);
  await press(page, 'J', 'J');
  equal(await place(), '40', 'the next sheet');
  await press(page, 'ArrowDown');
  equal(await place(), '42', 'a row of a pair sheet holds two');
  await press(page, 'K');
  equal(await place(), '0', 'the sheet before');
  await press(page, '/');
  await page.keyboard.type('img_0190');
  equal(await page.textContent('#status'), '10 of 1,960 images', 'the search');
  await press(page, 'Enter');
  equal(await page.textContent('#cells .cell.at .name'), 'IMG_01900.jpg', 'and on to what it found');
  await press(page, 'Enter');
  check(await page.isVisible('#detail'), 'which opens');
  await checkQuiet(it);
  await it.context.close();
}

async function namesAreText(browser) {
  const it = await open(browser, 'sheet.html');
  const text = await it.page.innerText('body');
  for (const name of HOSTILE) check(text.includes(name), `${name} is text`);
  equal((await it.page.$$('img[src=x], svg[onload]')).length, 0, 'no name became an element');
  await press(it.page, 'j', 'm');
  await it.page.keyboard.type('<img');
  await it.page.keyboard.press('Enter');
  await checkQuiet(it);
  await it.context.close();
  const plain = await open(browser, 'sheet.html', { script: false });
  check((await plain.page.innerText('body')).includes('an empty class'), 'without a script the sheets are named');
  await plain.context.close();
}

async function nothing(browser) {
  const it = await open(browser, 'sheet-empty.html');
  await press(it.page, 'j', 'm', 'x', 'r', 'u', 's', 'J', 'K', 'Enter', 'ArrowDown', '?');
  await checkQuiet(it);
  await it.context.close();
}

async function axe(browser) {
  let passes = 0;
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 400]) {
      const it = await open(browser, 'sheet.html', { scheme, width });
      const { page } = it;
      const what = `${scheme} ${width}`;
      await press(page, 'j', 'x', 'j', 'd', 'j', 'm', 's');
      passes += await checkAxe(page, `${what} label`);
      await page.screenshot({ path: `${SHOTS}/sheet-${scheme}-${width}-label.png` });
      await press(page, 'Enter');
      passes += await checkAxe(page, what);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(wide <= 0, `nothing hangs out of the window (${what}): ${wide} px`);
      await page.screenshot({ path: `${SHOTS}/sheet-${scheme}-${width}.png` });
      await press(page, 'Enter');
      passes += await checkAxe(page, `${what} large`);
      await page.screenshot({ path: `${SHOTS}/sheet-${scheme}-${width}-large.png` });
      await press(page, 'Escape', '?');
      passes += await checkAxe(page, `${what} help`);
      await it.context.close();
    }
  }
  console.log(`axe: 0 violations, ${passes} rules passed in all`);
}

await withBrowser(async browser => {
  for (const test of [opens, marks, strangers, moves, namesAreText, nothing, axe]) {
    await test(browser).catch(error => { throw new Error(`${test.name}: ${error.message}`, { cause: error }); });
  }
});
done('sheet page');

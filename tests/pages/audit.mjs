// The audit report of 5,000 images, in a real browser.
import { check, checkAxe, checkOpens, checkQuiet, done, downloaded, equal, figures, open, withBrowser, FOLDER, SHOTS } from './browser.mjs';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const HOSTILE = ['<img src=x onerror=window.owned=1>', '</script><script>window.owned=2</script>', "=cmd|' /C calc'!A0", '"><svg onload=window.owned=3>{{data}}'];

const number = text => Number(/([\d,]+) of/.exec(text)[1].replace(/,/g, ''));
const found = async page => number(await page.textContent('#image-status'));

async function opens(browser) {
  for (const hash of ['', '#images', '#sets']) {
    const it = await open(browser, 'audit.html', { hash });
    checkOpens(await figures(it), `audit.html${hash}`);
    await checkQuiet(it);
    await it.context.close();
  }
}

async function filters(browser) {
  const it = await open(browser, 'audit.html');
  const { page } = it;
  await page.click('.tile[data-find="F001,F002,F003,F004"]');
  const unreadable = await found(page);
  equal(unreadable, 52, 'the tile leads to the unreadable images');
  check((await page.textContent('.tile[data-find="F001,F002,F003,F004"] b')) === '52', 'as many as the tile says');
  await page.click('.facet[data-key="split:val"]');
  const some = await found(page);
  check(some > 0 && some < unreadable, `a split narrows it: ${some}`);
  check((await page.getAttribute('.facet[data-key="split:val"]', 'aria-pressed')) === 'true', 'the button is pressed');
  check(page.url().includes('split=val') && page.url().includes('#images'), 'the address keeps the filter');
  await page.reload();
  equal(await found(page), some, 'and brings it back');
  await page.goBack();
  await page.waitForFunction(() => !document.querySelector('#image-status').textContent.startsWith('0'));
  await page.keyboard.press('Escape');
  await page.keyboard.press('3');
  equal(await found(page), 5000, 'all again');
  await page.keyboard.press('/');
  await page.keyboard.type('img_0049');
  await page.waitForFunction(() => document.querySelector('#image-status').textContent.startsWith('10 of'));
  const names = await page.$$eval('#cards .name', all => all.map(n => n.textContent));
  equal(names.length, 10, 'the search finds them');
  check(names.every(n => n.startsWith('IMG_0049')), 'and only them');
  await page.fill('#search', '');
  await page.selectOption('#sort', 'path');
  const sorted = await page.$$eval('#cards .pick', all => all.map(b => b.title));
  equal(sorted.join('\n'), [...sorted].sort().join('\n'), 'sorted by path');
  await checkQuiet(it);
  await it.context.close();
}

// What is drawn, from top to bottom of the whole list.
async function scrolls(browser) {
  const it = await open(browser, 'audit.html', { hash: '#images' });
  const { page } = it;
  const places = new Set();
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let y = 0; y < height; y += 600) {
    await page.evaluate(to => new Promise(done => { scrollTo(0, to); requestAnimationFrame(() => requestAnimationFrame(done)); }), y);
    for (const place of await page.$$eval('#cards .cell', all => all.map(c => Number(c.dataset.at)))) places.add(place);
    const rows = await page.evaluate(() => document.querySelectorAll('.rows *').length);
    check(rows <= 400, `few elements at ${y}: ${rows}`);
  }
  equal(places.size, 5000, 'every image is drawn when it is scrolled to');
  await it.context.close();
}

async function marks(browser) {
  const it = await open(browser, 'audit.html', { hash: '#images' });
  const { page } = it;
  // The first six have the hostile names.
  for (let n = 0; n < 6; n++) {
    await page.keyboard.press('j');
    await page.keyboard.press('x');
  }
  await page.keyboard.press('k');
  await page.keyboard.press('x');
  equal(await page.textContent('#marks-count'), '5 marked', 'marked by keys, one taken back');
  const marked = await page.$$eval('#cards .cell.marked .pick', all => all.length);
  equal(marked, 5, 'and it shows');
  await page.keyboard.press('k');
  await page.keyboard.press('Enter');
  check(await page.isVisible('#detail'), 'Enter opens the detail');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('x');
  await page.keyboard.press('Escape');
  check(!(await page.isVisible('#detail')), 'Escape closes it');
  const data = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent).images.map(i => i.path));
  const want = [0, 1, 2, 3, 5, 6].map(at => data[at]);
  const order = (a, b) => a < b ? -1 : 1;
  const saved = await downloaded(page, () => page.click('#marks-save'));
  equal(saved.name, 'list.txt', 'its name');
  equal(saved.text, want.sort(order).map(p => `${p}\n`).join(''), 'the list holds exactly what was marked');
  writeFileSync(`${SHOTS}/list.txt`, saved.text);
  const read = execFileSync(process.env.PREP, ['stats', FOLDER, '--files-from', `${SHOTS}/list.txt`, '--json', '-n'], { encoding: 'utf8' });
  equal(JSON.parse(read).images, 6, 'prep takes the list and finds every file');
  const again = await downloaded(page, () => page.keyboard.press('s'));
  equal(again.text, saved.text, 'the key does the same');
  await it.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.keyboard.press('c');
  await page.waitForFunction(() => document.getElementById('toast').textContent === 'Copied 6 paths');
  equal(await page.evaluate(() => navigator.clipboard.readText()), saved.text, 'and so does the clipboard');
  await page.reload();
  equal(await page.textContent('#marks-count'), '6 marked', 'marks outlive a visit');
  await page.goto(it.address + '#images&find=F003');
  await page.reload();
  await page.click('#mark-all');
  equal(await page.textContent('#marks-count'), '58 marked', 'all that were found');
  await page.click('#marks-show');
  equal(await found(page), 58, 'only the marked ones');
  await page.click('#marks-clear');
  check(!(await page.isVisible('#marks')), 'all taken back');
  await checkQuiet(it);
  await it.context.close();
}

async function duplicates(browser) {
  const it = await open(browser, 'audit.html', { hash: '#sets' });
  const { page } = it;
  const status = () => page.textContent('#set-status');
  equal(await status(), '300 of 300 sets', 'all sets');
  await page.click('#set-pills button:has-text("D005")');
  const leaks = number(await status());
  check(leaks > 0 && leaks < 300, `only leaks: ${leaks}`);
  check((await page.$$('.set .tag.differs')).length > 3, 'splits that differ stand out');
  await page.click('#set-pills button:has-text("All")');
  await page.click('.set .more');
  equal(await found(page), 14, 'a large set opens as a filter');
  await page.goBack();
  await page.click('.set .pick');
  check((await page.$$('#detail .twins button')).length > 0, 'the detail shows the others');
  await page.click('#detail .twins button');
  await page.keyboard.press('Escape');
  await checkQuiet(it);
  await it.context.close();
}

async function originals(browser) {
  const it = await open(browser, 'audit.html', { hash: '#images' });
  const { page, seen } = it;
  for (let n = 0; n < 6; n++) {
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#detail .large img')?.naturalWidth === 800);
    await page.keyboard.press('Escape');
  }
  equal(seen.errors.join('\n'), '', 'every original is found, whatever its name');
  // No name leads elsewhere.
  const addresses = [
    ['', '//evil.example/x.jpg', '/evil.example/x.jpg'], ['', 'https://evil.example/x', './https%3A//evil.example/x'],
    ['', 'javascript:alert(1)', './javascript%3Aalert(1)'], ['../photos', 'a b/100%0A%FF%41.jpg?#', './../photos/a%20b/100%0A%FF%2541.jpg%3F%23'],
  ];
  for (const [root, path, want] of addresses) {
    equal(await page.evaluate(([r, p]) => address(r, p), [root, path]), want, `the address of ${path}`);
  }
  await checkQuiet(it);
  await it.context.close();
}

async function namesAreText(browser) {
  for (const script of [true, false]) {
    const it = await open(browser, 'audit.html', { script });
    const text = await it.page.innerText('body');
    for (const name of HOSTILE) check(text.includes(name), `${name} is text, script ${script}`);
    check(text.includes('\\u{1b}[31m') && text.includes('\\u{202e}'), 'what cannot be seen is spelled out');
    for (const word of ['F003', 'truncated', 'IMG_00013.jpg', 'Fetch the file again', 'powdery_mildew', 'Q001']) {
      check((await it.page.textContent('body')).includes(word), `${word} is on the page, script ${script}`);
    }
    equal((await it.page.$$('img[src=x], svg[onload]')).length, 0, 'no name became an element');
    check((await it.page.$$('svg[role=img][aria-label]')).length >= 6, 'charts have words');
    if (script) await checkQuiet(it);
    await it.context.close();
  }
}

async function axe(browser) {
  let passes = 0;
  for (const scheme of ['light', 'dark']) {
    for (const width of [1280, 400]) {
      for (const view of ['', '#sets', '#images&find=F003']) {
        const it = await open(browser, 'audit.html', { scheme, width, hash: view });
        if (view.includes('images')) { await it.page.keyboard.press('j'); await it.page.keyboard.press('x'); }
        const what = `${scheme} ${width} ${view.slice(1, 7) || 'overview'}`;
        passes += await checkAxe(it.page, what);
        const wide = await it.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        check(wide <= 0, `nothing hangs out of the window (${what}): ${wide} px`);
        await it.page.screenshot({ path: `${SHOTS}/audit-${what.replace(/ /g, '-')}.png`, fullPage: !view });
        if (view.includes('images')) {
          await it.page.keyboard.press('Enter');
          passes += await checkAxe(it.page, `${what} detail`);
          await it.page.screenshot({ path: `${SHOTS}/audit-${what.replace(/ /g, '-')}-detail.png` });
          await it.page.keyboard.press('Escape');
          await it.page.keyboard.press('?');
          passes += await checkAxe(it.page, `${what} help`);
        }
        await it.context.close();
      }
    }
  }
  console.log(`axe: 0 violations, ${passes} rules passed in all`);
}

async function nothing(browser) {
  const it = await open(browser, 'audit-empty.html');
  check((await it.page.innerText('body')).includes('Nothing found'), 'a clean set');
  for (const key of ['2', '3', 'j', 'x', 's', 'Enter', '1', '?']) await it.page.keyboard.press(key);
  await checkQuiet(it);
  await checkAxe(it.page, 'empty');
  await it.context.close();
}

await withBrowser(async browser => {
  for (const test of [opens, filters, scrolls, marks, duplicates, originals, namesAreText, nothing, axe]) {
    await test(browser).catch(error => { throw new Error(`${test.name}: ${error.message}`, { cause: error }); });
  }
});
done('audit page');

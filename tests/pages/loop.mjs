// The loop of label cleaning, with the real binary: draw a page, mark by keyboard, save, apply, look again, undo.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { crc32, deflateSync } from 'node:zlib';
import { check, checkAxe, done, downloaded, equal, withBrowser } from './browser.mjs';

const PREP = resolve(process.env.PREP || `${process.cwd()}/target/debug/prep`);

// A PNG of one colour.
function png(width, height, colour) {
  const chunk = (name, body) => {
    const out = Buffer.alloc(body.length + 12);
    out.writeUInt32BE(body.length, 0);
    out.write(name, 4, 'latin1');
    body.copy(out, 8);
    out.writeUInt32BE(crc(out.subarray(4, body.length + 8)), body.length + 8);
    return out;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, Buffer.from(colour))]);
  const rows = Buffer.concat(Array(height).fill(row));
  return Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
}

// Older versions of Node have no crc32 of their own.
function crc(bytes) {
  if (crc32) return crc32(bytes);
  let value = ~0;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return ~value >>> 0;
}

const work = mkdtempSync(join(tmpdir(), 'prep-loop-'));
const env = { ...process.env, XDG_CACHE_HOME: join(work, 'cache'), XDG_STATE_HOME: join(work, 'state') };
const prep = (...args) => execFileSync(PREP, args, { cwd: work, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

try {
  for (const [label, colour] of [['rust', [180, 90, 40]], ['scab', [60, 60, 50]], ["o'clock, \"x\"", [30, 120, 200]]]) {
    mkdirSync(join(work, 'set', label), { recursive: true });
    for (let i = 0; i < 4; i++) writeFileSync(join(work, 'set', label, `${i} =é.png`), png(40 + i, 30, colour));
  }
  prep('sheet', 'set', '--format', 'html');
  await withBrowser(async browser => {
    const context = await browser.newContext({ offline: true, acceptDownloads: true });
    const page = await context.newPage();
    const foreign = [];
    page.on('request', request => { if (!/^(data|blob|file):/.test(request.url())) foreign.push(request.url()); });
    await page.goto(pathToFileURL(join(work, 'set-sheets/sheets.html')).href, { waitUntil: 'load' });
    const cells = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent).sections.flatMap(s => s.cells));
    equal(cells.length, 12, 'all images are on the page');
    await checkAxe(page, 'a page of the binary');
    for (const key of ['j', 'm']) await page.keyboard.press(key);
    await page.keyboard.type('sca');
    for (const key of ['Enter', 'j', 'x', 'j', 'd']) await page.keyboard.press(key);
    const saved = await downloaded(page, () => page.keyboard.press('s'));
    writeFileSync(join(work, 'fixes.csv'), saved.text);
    equal(foreign.join(' '), '', 'nothing is asked of a network');

    check(prep('apply', 'fixes.csv', 'set', '-n').includes('→ scab'), 'the change is shown');
    check(!existsSync(join(work, 'set/manifest.csv')), 'and not made');
    check(prep('apply', 'fixes.csv', 'set').includes('1 relabelled, 1 excluded, 1 doubtful'), 'all marks are applied');
    const manifest = readFileSync(join(work, 'set/manifest.csv'), 'utf8').split('\n');
    const row = at => manifest.find(line => line.replaceAll('""', '"').includes(cells[at].path)) || '';
    check(row(0).includes(',scab,'), `relabelled: ${row(0)}`);
    check(row(1).includes('excluded'), `excluded: ${row(1)}`);
    check(row(2).includes('doubtful'), `doubtful: ${row(2)}`);
    check(prep('apply', 'fixes.csv', 'set').includes('3 as it is already'), 'a second time changes nothing');
    check(prep('sheet', 'set').includes('11 images'), 'junk is left out');
    prep('undo', 'set');
    check(!existsSync(join(work, 'set/manifest.csv')), 'undo takes it back');
    await context.close();
  });
} finally {
  rmSync(work, { recursive: true, force: true });
}
done('loop');

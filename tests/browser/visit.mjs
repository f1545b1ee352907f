// node visit.mjs FILE CASE: runs one case, as page.bats asks. Exit status: 0 when it holds.

const [file, name] = process.argv.slice(2);
const cases = await import(`./${file}.mjs`);
if (typeof cases[name] !== 'function') throw new Error(`${file}.mjs has no case ${name}`);
await cases[name]();

// The initiator of nostr-tools, timed; `peers.py` runs it.
//
//   node peers.mjs FILE LIMIT RUNS
//
// FILE holds the items, 40 bytes each: created_at as little-endian uint64, then the id. Questions go to stdout, a line
// of hex each, and their answers come from stdin. After each run follows a JSON line: milliseconds to insert, to seal
// and of all the initiator's rounds, without the waits for answers, and how many ids it found.
import { readFileSync, readSync, writeSync } from 'node:fs'
import { nip77 } from 'nostr-tools'

const [file, limit, runs] = process.argv.slice(2)
const columns = readFileSync(file)
const items = []
for (let at = 0; at < columns.length; at += 40) {
  items.push([Number(columns.readBigUInt64LE(at)), columns.toString('hex', at + 8, at + 40)])
}

const chunk = Buffer.alloc(1 << 20)
let read = ''
function readLine() {
  let end
  while ((end = read.indexOf('\n')) < 0) {
    const size = readSync(0, chunk)
    if (size === 0) process.exit(1)
    read += chunk.toString('latin1', 0, size)
  }
  const line = read.slice(0, end)
  read = read.slice(end + 1)
  return line
}

function writeLine(line) {
  const bytes = Buffer.from(line + '\n', 'latin1')
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at)
}

for (let run = 0; run < Number(runs); run++) {
  let begin = performance.now()
  const spent = { insert: 0, seal: 0, initiator: 0, have: 0, need: 0 }
  function lap(stage) {
    const now = performance.now()
    spent[stage] += now - begin
    begin = now
  }

  const storage = new nip77.NegentropyStorageVector()
  for (const [timestamp, id] of items) storage.insert(timestamp, id)
  lap('insert')
  storage.seal()
  lap('seal')
  const negentropy = new nip77.Negentropy(storage, Number(limit))
  let question = negentropy.initiate()
  lap('initiator')
  while (question !== null) {
    writeLine(question)
    const answer = readLine()
    begin = performance.now()
    question = negentropy.reconcile(answer, () => spent.have++, () => spent.need++)
    lap('initiator')
  }
  writeLine(JSON.stringify(spent))
}

// What has arrived: one row an event, in growing arrays with a ceiling, and the figures of it.
//
// The definitions are those of scripts/itl: n tokens give n - 1 gaps; tokens of one event arrived
// together, with gaps of 0; percentiles are by nearest rank, so always a gap that was measured; an
// event is coalesced when the read that brought it had brought the event before. A resumed stream
// is a piece that begins where the one before ended: the pause is no gap and takes no time.

const LIMIT = 250000; // rows; later events are counted, and have none

export class Series {
  rows = 0;
  t = new Float64Array(1024); // ms since the first request, pauses left out
  due = new Float64Array(1024); // ms of the server's clock; NaN without stamps
  i = new Float64Array(1024); // number of the event's first token
  n = new Float64Array(1024); // its tokens
  events = 0;
  tokens = 0;
  coalesced = 0;
  ttft = NaN;
  last = 0; // when the last token came
  next = 0; // number of the token that is to come
  // { row, t, offset, tokens }: the first row, when it began, the page's clock less the server's.
  pieces = [];

  begin() {
    this.pieces.push({ row: this.rows, t: this.last, offset: Infinity, tokens: 0 });
  }

  add(batch) {
    const piece = this.pieces.at(-1);
    for (let k = 0; k < batch.t.length; k++) {
      const t = piece.t + batch.t[k];
      // The token that was quickest on its way tells the difference of the clocks best.
      if (t - batch.sent[k] < piece.offset) piece.offset = t - batch.sent[k];
      if (this.events === 0) this.ttft = t;
      this.events += 1;
      this.tokens += batch.n[k];
      piece.tokens += batch.n[k];
      if (batch.coalesced[k]) this.coalesced += 1;
      this.last = t;
      this.next = batch.i[k] + batch.n[k];
      if (this.rows < LIMIT) this.#push(t, batch.due[k], batch.i[k], batch.n[k]);
    }
  }

  #push(t, due, i, n) {
    if (this.rows === this.t.length) {
      for (const name of ['t', 'due', 'i', 'n']) {
        const longer = new Float64Array(Math.min(this.rows * 2, LIMIT));
        longer.set(this[name]);
        this[name] = longer;
      }
    }
    this.t[this.rows] = t;
    this.due[this.rows] = due;
    this.i[this.rows] = i;
    this.n[this.rows] = n;
    this.rows += 1;
  }

  // Calls back with each row, the time when it was due on the page's clock (NaN: unknown), and
  // whether it is the first of a piece.
  each(callback) {
    this.pieces.forEach((piece, index) => {
      const end = this.pieces[index + 1]?.row ?? this.rows;
      for (let row = piece.row; row < end; row++) {
        callback(row, this.due[row] + piece.offset, row === piece.row);
      }
    });
  }

  dueOf(row) {
    const piece = this.pieces.findLast(({ row: first }) => first <= row);
    return this.due[row] + piece.offset;
  }

  figures() {
    const gaps = new Float64Array(this.rows);
    const late = new Float64Array(this.rows);
    let gapCount = 0;
    let lateCount = 0;
    let zeros = 0;
    this.each((row, due, isFirst) => {
      if (!isFirst) gaps[gapCount++] = this.t[row] - this.t[row - 1];
      if (!Number.isNaN(due)) late[lateCount++] = this.t[row] - due;
      zeros += this.n[row] - 1;
    });
    const sortedGaps = gaps.subarray(0, gapCount).sort();
    const sortedLate = late.subarray(0, lateCount).sort();
    return {
      gaps: zeros + gapCount,
      gapP50: nearestRank(sortedGaps, zeros, 50),
      gapP99: nearestRank(sortedGaps, zeros, 99),
      lateP50: nearestRank(sortedLate, 0, 50),
      lateMax: lateCount === 0 ? NaN : sortedLate[lateCount - 1],
      rate: this.last > 0 ? this.tokens / this.last * 1000 : NaN,
    };
  }
}

// The percentile of sorted values before which `zeros` zeros are to be thought.
function nearestRank(sorted, zeros, percent) {
  const count = zeros + sorted.length;
  if (count === 0) return NaN;
  const rank = Math.max(1, Math.ceil(percent * count / 100));
  return rank <= zeros ? 0 : sorted[rank - zeros - 1];
}

// The bytes of an event stream, in any legal spelling, as events (WHATWG HTML, section 9.2.6).
//
// A line ends with LF, CR LF or CR, also when a read ends between the two. The TextDecoder takes a
// byte order mark off. An event that the stream's end cuts is none. A line, or the data of an event,
// above LIMIT characters throws: no stream may fill the memory.

const LIMIT = 1 << 20;

export class SseParser {
  #onEvent;
  #decoder = new TextDecoder();
  #rest = ''; // of a line that has not ended
  #isAfterCr = false; // an LF that comes now belongs to the CR before it
  #event = { type: '', data: '', id: undefined };

  // onEvent({ type, data, id }): `id` is the event's own, undefined when it has none. `lastEventId`
  // is what the header Last-Event-ID had, or ''.
  constructor(onEvent, lastEventId) {
    this.#onEvent = onEvent;
    this.lastEventId = lastEventId;
  }

  feed(bytes) {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return;
    const end = /\r\n?|\n/g;
    let start = this.#isAfterCr && text[0] === '\n' ? 1 : 0;
    end.lastIndex = start;
    for (let found; (found = end.exec(text)) !== null; start = end.lastIndex) {
      const line = this.#rest + text.slice(start, found.index);
      this.#rest = '';
      this.#takeLine(line);
    }
    this.#rest += text.slice(start);
    this.#isAfterCr = text.endsWith('\r');
    if (this.#rest.length + this.#event.data.length > LIMIT) throw new Error('an event above 1 MiB');
  }

  // Whether the stream, if it ended now, would end within an event.
  get isInsideEvent() {
    return this.#rest !== '' || this.#event.data !== '';
  }

  #takeLine(line) {
    const [, name, value] = /^([^:]*)(?:: ?([^]*))?$/.exec(line);
    if (line === '') this.#dispatch();
    else if (name === 'data') this.#event.data += `${value ?? ''}\n`;
    else if (name === 'event') this.#event.type = value ?? '';
    else if (name === 'id' && !value?.includes('\0')) this.#event.id = value ?? '';
    // Other fields, and comments, whose name is empty, say nothing here.
  }

  #dispatch() {
    const { type, data, id } = this.#event;
    this.#event = { type: '', data: '', id: undefined };
    this.lastEventId = id ?? this.lastEventId;
    if (data !== '') this.#onEvent({ type: type || 'message', data: data.slice(0, -1), id });
  }
}

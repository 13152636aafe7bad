/** Deepest nesting that is read. */
const DEPTH_MAX = 64;
/** Largest decimal exponent of a number, in either direction: a double holds every such number. */
const EXPONENT_MAX = 307;

/**
 * The one spelling of a JSON text, in the manner of RFC 8785, without the members and elements at these JSON pointers.
 *
 * Numbers are exact decimals: two amounts that a double cannot tell apart are still two amounts. A text that is not JSON, or has no single
 * meaning (a member named twice, nested too deeply, a number out of range), has none.
 */
export function canonicalJson(text: string, ignored: readonly string[] = []): string | undefined {
  try {
    return new Reader(text, new Set(ignored)).whole();
  } catch (error) {
    if (error instanceof NotCanonical) return undefined;
    throw error;
  }
}

class NotCanonical extends Error {}

class Reader {
  readonly #text: string;
  readonly #ignored: ReadonlySet<string>;
  #at = 0;
  #depth = 0;

  constructor(text: string, ignored: ReadonlySet<string>) {
    this.#text = text;
    this.#ignored = ignored;
  }

  whole(): string {
    const spelled = this.#value("");
    this.#space();
    if (this.#at < this.#text.length) throw new NotCanonical();
    return spelled;
  }

  #value(pointer: string): string {
    this.#space();
    const first = this.#text[this.#at];
    if (first === "{") return this.#nested(() => this.#object(pointer));
    if (first === "[") return this.#nested(() => this.#array(pointer));
    if (first === '"') return JSON.stringify(this.#string());
    return this.#word() ?? this.#number();
  }

  #nested(read: () => string): string {
    if (this.#depth === DEPTH_MAX) throw new NotCanonical();
    this.#depth++;
    this.#at++;
    const spelled = read();
    this.#depth--;
    return spelled;
  }

  #object(pointer: string): string {
    const members = new Map<string, string | undefined>();
    while (!this.#ends("}", members.size === 0)) {
      const name = this.#string();
      this.#space();
      this.#expect(":");
      const at = this.#ignored.size === 0 ? "" : `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      const value = this.#value(at);
      if (members.has(name)) throw new NotCanonical();
      members.set(name, this.#ignored.has(at) ? undefined : value);
    }
    // Names are ordered as UTF-16, which is how strings compare here.
    const names = [...members.keys()].filter((name) => members.get(name) !== undefined).sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${members.get(name)}`).join(",")}}`;
  }

  #array(pointer: string): string {
    const elements: string[] = [];
    for (let index = 0; !this.#ends("]", index === 0); index++) {
      const at = this.#ignored.size === 0 ? "" : `${pointer}/${index}`;
      const value = this.#value(at);
      if (!this.#ignored.has(at)) elements.push(value);
    }
    return `[${elements.join(",")}]`;
  }

  /** Whether the object or array ends here; otherwise what separates its parts is passed. */
  #ends(close: string, isFirst: boolean): boolean {
    this.#space();
    if (this.#take(close)) return true;
    if (!isFirst) {
      this.#expect(",");
      this.#space();
    }
    return false;
  }

  #string(): string {
    // Half of a surrogate pair is no character, and JSON.parse would let it pass.
    const literal = this.#match(/"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    const text = JSON.parse(literal) as string;
    if (/[\ud800-\udfff]/.test(text) && !isWellFormed(text)) throw new NotCanonical();
    return text;
  }

  #word(): string | undefined {
    return ["true", "false", "null"].find((word) => {
      const is = this.#text.startsWith(word, this.#at);
      if (is) this.#at += word.length;
      return is;
    });
  }

  #number(): string {
    const literal = this.#match(/-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y);
    const [, sign = "", whole = "", fraction = "", exponent = "0"] =
      /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE](.+))?$/.exec(literal) ?? [];
    if (Math.abs(Number(exponent)) > 2 ** 31 - 1) throw new NotCanonical();
    const digits = `${whole}${fraction}`.replace(/^0+/, "");
    const significant = digits.replace(/0+$/, "");
    if (significant === "") return "0";
    const power = Number(exponent) - fraction.length + (digits.length - significant.length);
    if (Math.abs(power + significant.length - 1) > EXPONENT_MAX) throw new NotCanonical();
    return `${sign}${significant}${power === 0 ? "" : `e${power}`}`;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found === undefined) throw new NotCanonical();
    this.#at += found.length;
    return found;
  }

  #space(): void {
    while (" \t\n\r".includes(this.#text[this.#at] ?? "x")) this.#at++;
  }

  #take(character: string): boolean {
    const found = this.#text[this.#at] === character;
    if (found) this.#at++;
    return found;
  }

  #expect(character: string): void {
    if (!this.#take(character)) throw new NotCanonical();
  }
}

function isWellFormed(text: string): boolean {
  return Buffer.from(text).toString() === text;
}

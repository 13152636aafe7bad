import type { Reading } from "./reading.js";

/** What an operation came to. */
export type Conclusion = "done" | "refused" | "unknown" | "gave up";

/** What all attempts of one operation add up to. */
export class History {
  /** Whether an attempt may have had its effect, and nobody said. */
  #isDoubtful: boolean;
  /** The status of a success that broke off. */
  #cut: number | undefined;
  #word: "yes" | "no" | undefined;
  readonly #readsOnly: boolean;

  /** `isTakenOver`: somebody began it and is gone, so that an attempt may have happened. What only reads leaves no doubt. */
  constructor({ isTakenOver = false, readsOnly = false } = {}) {
    this.#isDoubtful = isTakenOver && !readsOnly;
    this.#readsOnly = readsOnly;
  }

  /** Takes in what came of one more attempt; `begun` is the status of an answer that began and broke off. */
  note(reading: Reading, status: number | undefined, begun?: number): void {
    if (this.#word === "yes") return;
    this.#word = this.#heard(reading, status);
    // What follows "taken on, not yet done" need not be the same.
    if (begun !== undefined && begun !== 202 && isSuccess(begun)) this.#cut ??= begun;
  }

  /** What it comes to if nothing else is tried. */
  conclusion(): Conclusion {
    if (this.#word === "yes") return "done";
    if (this.#word === "no") return "refused";
    return this.#isDoubtful ? "unknown" : "gave up";
  }

  #heard(reading: Reading, status: number | undefined): "yes" | "no" | undefined {
    switch (reading.result) {
      case "success":
        // A server that began one success and sends another contradicts itself.
        return this.#cut === undefined || this.#cut === status ? "yes" : this.#doubted();
      case "not-retained":
      case "in-doubt":
      case "in-flight":
      case "unanswered":
      case "failed":
        return this.#doubted();
      case "key-reused":
        return this.#refused(true);
      case "gone":
        // What came of the key is forgotten, so it cannot settle a doubt.
        return this.#refused(false);
      case "refused":
        return this.#refused(reading.knowsKey);
      case "not-sent":
      case "nothing-ran":
      case "not-now":
        return undefined;
    }
  }

  /** A no is believed if there was no doubt, or if it answers the doubt; never after half a yes. */
  #refused(knowsKey: boolean): "no" | undefined {
    if ((this.#isDoubtful && !knowsKey) || this.#cut !== undefined) return this.#doubted();
    this.#isDoubtful = false;
    return "no";
  }

  #doubted(): undefined {
    this.#isDoubtful ||= !this.#readsOnly;
  }
}

export function isSuccess(status: number): boolean {
  return (status >= 200 && status < 300) || status === 303 || status === 304;
}

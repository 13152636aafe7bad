import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

import type { Reply } from "../http/problem.js";

/** Keeps what a handler writes to a response, so that it is sent after the commit, or not at all. */
export class Recorder {
  readonly #response: ServerResponse;
  /** What was set before the handler ran, by whoever does so for every response. */
  readonly #statusBefore: number;
  readonly #headersBefore: OutgoingHttpHeaders;

  constructor(response: ServerResponse) {
    this.#response = response;
    this.#statusBefore = response.statusCode;
    this.#headersBefore = { ...response.getHeaders() };
  }

  /** Runs a handler until it ends the response, and leaves the response as it was. */
  async record(run: () => unknown): Promise<Reply> {
    const response = this.#response;
    const { write, end, writeHead, flushHeaders } = response;
    try {
      return await this.#run(run);
    } finally {
      Object.assign(response, { write, end, writeHead, flushHeaders });
      response.statusCode = this.#statusBefore;
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      for (const [name, value] of Object.entries(this.#headersBefore))
        if (value !== undefined) response.setHeader(name, value);
    }
  }

  static send(response: ServerResponse, { status, headers, body }: Reply): void {
    response.statusCode = status;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    response.end(body);
  }

  #run(run: () => unknown): Promise<Reply> {
    const response = this.#response;
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      const note = (chunk: unknown, rest: unknown[]) => {
        if (typeof chunk === "string")
          chunks.push(Buffer.from(chunk, typeof rest[0] === "string" ? (rest[0] as BufferEncoding) : "utf8"));
        else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
        const callback = [chunk, ...rest].find((argument) => typeof argument === "function") as
          (() => void) | undefined;
        if (callback !== undefined) queueMicrotask(callback);
      };
      Object.assign(response, {
        flushHeaders: () => undefined,
        writeHead: (status: number, ...more: unknown[]) => {
          response.statusCode = status;
          for (const [name, value] of pairs(more.at(-1))) response.setHeader(name, value);
          return response;
        },
        write: (chunk: unknown, ...rest: unknown[]) => {
          note(chunk, rest);
          return true;
        },
        end: (chunk?: unknown, ...rest: unknown[]) => {
          note(chunk, rest);
          resolve({ status: response.statusCode, headers: this.#headers(), body: Buffer.concat(chunks) });
          return response;
        },
      });
      Promise.resolve()
        .then(run)
        .then(() => hungUp(response))
        .catch(reject);
    });
  }

  /** What the handler set. */
  #headers(): Reply["headers"] {
    const set = Object.entries(this.#response.getHeaders()).filter(
      ([name, value]) => value !== this.#headersBefore[name],
    );
    return Object.fromEntries(set.map(([name, value]) => [name, Array.isArray(value) ? value : String(value)]));
  }
}

/** A handler that returned without an answer is waited for as long as its client waits. */
export function hungUp(response: ServerResponse): Promise<never> {
  return new Promise((_, reject) => {
    const give = () => reject(new Error("the handler returned without an answer, and the client is gone"));
    if (response.closed) give();
    else response.once("close", give);
  });
}

function pairs(headers: unknown): readonly [string, string | string[]][] {
  if (Array.isArray(headers))
    return headers.flatMap((name, at) => (at % 2 === 0 ? [[String(name), headers[at + 1]]] : []));
  return typeof headers === "object" && headers !== null ? Object.entries(headers) : [];
}

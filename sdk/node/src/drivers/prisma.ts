import type { Database, Isolation, Row } from "../database.js";
import { Hapax } from "../hapax.js";
import type { ServerError } from "../server-error.js";

/** A client of Prisma on PostgreSQL, as `prisma generate` makes it. */
export interface Prisma<Tx extends Session> extends Session {
  $transaction<T>(work: (tx: Tx) => Promise<T>, options?: PrismaTransactionOptions): Promise<T>;
}

interface Session {
  $queryRawUnsafe<T>(query: string, ...values: unknown[]): PromiseLike<T>;
  $executeRawUnsafe(query: string, ...values: unknown[]): PromiseLike<number>;
}

interface PrismaTransactionOptions {
  maxWait?: number;
  timeout?: number;
  isolationLevel?: "ReadCommitted" | "RepeatableRead" | "Serializable";
}

/** Prisma's own limits of a transaction. */
export interface PrismaOptions {
  /** How long to wait for a connection of the pool: 10 s if it is not said. */
  readonly maxWaitMs?: number;
  /** How long a transaction may take, besides what it waits for others: 30 s if it is not said. */
  readonly timeoutMs?: number;
}

const MAX_WAIT_MS = 10_000;
const TIMEOUT_MS = 30_000;

/** Hapax in interactive transactions of Prisma. */
export function hapax<Tx extends Session>(prisma: Prisma<Tx>, options: PrismaOptions = {}): Hapax<Tx> {
  return new Hapax(database(prisma, options));
}

function database<Tx extends Session>(prisma: Prisma<Tx>, options: PrismaOptions): Database<Tx> {
  return {
    transaction(work, { isolation, waitMs }) {
      const timeout = waitMs + (options.timeoutMs ?? TIMEOUT_MS);
      const limits = { maxWait: options.maxWaitMs ?? MAX_WAIT_MS, timeout };
      return prisma.$transaction(
        work,
        isolation === undefined ? limits : { ...limits, isolationLevel: LEVELS[isolation] },
      );
    },
    async query(tx, text, values) {
      const session = tx ?? prisma;
      if (text.startsWith("SELECT")) return session.$queryRawUnsafe<Row[]>(text, ...values);
      await session.$executeRawUnsafe(text, ...values);
      return [];
    },
    serverError,
  };
}

const LEVELS = {
  "read committed": "ReadCommitted",
  "repeatable read": "RepeatableRead",
  serializable: "Serializable",
} as const satisfies Record<Isolation, string>;

/** An adapter's error, as Prisma hands it on. */
interface AdapterError {
  readonly originalCode?: unknown;
  readonly originalMessage?: unknown;
  readonly hint?: unknown;
}

function serverError(error: unknown): ServerError | undefined {
  const { meta, cause } = (error ?? {}) as {
    meta?: { driverAdapterError?: { cause?: AdapterError } };
    cause?: AdapterError;
  };
  const { originalCode, originalMessage, hint } = meta?.driverAdapterError?.cause ?? cause ?? {};
  if (typeof originalCode !== "string") return undefined;
  return {
    sqlstate: originalCode,
    message: String(originalMessage),
    hint: typeof hint === "string" ? hint : undefined,
  };
}

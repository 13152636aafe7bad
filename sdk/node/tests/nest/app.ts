// The payments API in Nest: decorators need a compiler.

import "reflect-metadata";

import { Body, Controller, Get, HttpException, type INestApplication, Module, Post, Res } from "@nestjs/common";
import { APP_INTERCEPTOR, NestFactory, type AbstractHttpAdapter } from "@nestjs/core";
import type { Hapax } from "hapax-once";
import { Once, OnceInterceptor, Tx, type ProtectionOptions } from "hapax-once/nest";
import type { PoolClient } from "pg";

interface Said {
  status: number;
  headers: Record<string, string>;
  value: object;
}

type Pay = (tx: PoolClient, body: unknown) => Promise<Said>;

interface Answering {
  status(code: number): unknown;
  header(name: string, value: string): unknown;
}

export async function nest(
  pay: Pay,
  hapax: Hapax<PoolClient>,
  options: ProtectionOptions<object>,
  adapter: AbstractHttpAdapter,
): Promise<INestApplication> {
  async function answered(tx: PoolClient, body: unknown, response: Answering): Promise<object> {
    const { status, headers, value } = await pay(tx, body);
    // As Nest's users do, a refusal is an exception.
    if (status >= 400) throw new HttpException(value, status);
    response.status(status);
    for (const [name, text] of Object.entries(headers)) response.header(name, text);
    return value;
  }

  @Controller()
  @Once()
  class Payments {
    @Post("payments")
    async pay(
      @Tx() tx: PoolClient,
      @Body() body: unknown,
      @Res({ passthrough: true }) response: Answering,
    ): Promise<object> {
      return await answered(tx, body, response);
    }

    @Post("notes")
    @Once({ ignore: ["/sent_at"] })
    async note(
      @Tx() tx: PoolClient,
      @Body() body: unknown,
      @Res({ passthrough: true }) response: Answering,
    ): Promise<object> {
      return await answered(tx, body, response);
    }

    @Get("payments")
    async count(@Tx() tx: PoolClient): Promise<object> {
      return { payments: (await tx.query("SELECT FROM effects")).rowCount };
    }
  }

  @Module({
    controllers: [Payments],
    providers: [{ provide: APP_INTERCEPTOR, useFactory: () => new OnceInterceptor(hapax, options) }],
  })
  class App {}

  return await NestFactory.create(App, adapter, { rawBody: true, logger: false, forceCloseConnections: true });
}

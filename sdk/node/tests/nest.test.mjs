import { ExpressAdapter } from "@nestjs/platform-express";
import { FastifyAdapter } from "@nestjs/platform-fastify";

import { nest } from "../build/nest/app.js";
import { check, pay } from "./payments.mjs";
import { database } from "./world.mjs";

const world = await database();

const on = (adapter) => async (hapax, options) => {
  const app = await nest(pay, hapax, options, adapter());
  await app.listen(0, "127.0.0.1");
  return { url: `http://127.0.0.1:${app.getHttpServer().address().port}`, stop: () => app.close() };
};

check(
  "nest on express",
  world,
  on(() => new ExpressAdapter()),
);
check(
  "nest on fastify",
  world,
  on(() => new FastifyAdapter()),
);

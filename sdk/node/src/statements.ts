// Every parameter is a text or bytes, and so is every column: no driver, and no type parser that somebody set, reads them otherwise.

export const BEGIN = `SELECT decision, operation::text AS operation, fence::text AS fence, status::text AS status,
  headers::text AS headers, body, retry_after::text AS retry_after, array_to_string(differs, ',') AS differs,
  (date_part('epoch', expires_at) * 1000)::bigint::text AS expires_at
FROM hapax.begin_bytes($1::text, $2::text, $3::text, $4::bytea, $5::text, $6::text, $7::text,
  $8::text::interval, $9::text::interval, $10::text::interval)`;

export const FINISH =
  "SELECT 1 FROM hapax.finish($1::text::uuid, $2::text::bigint, $3::text::integer, $4::text::jsonb, $5::bytea)";

export const FAIL =
  "SELECT 1 FROM hapax.fail($1::text::uuid, $2::text::bigint, $3::text::integer, $4::text::jsonb, $5::bytea)";

export const EMIT = `SELECT hapax.emit($1::text, $2::text, $3::bytea, $4::text::jsonb, $5::text, $6::text::uuid)::text AS id`;

export const FIRST_DELIVERY = `SELECT hapax.first_delivery($1::text, $2::text, $3::bytea, $4::text,
  $5::text::interval, $6::text::interval)::text AS first`;

export const FAIL_DELIVERY = `SELECT attempts::text AS attempts, is_over::text AS is_over
FROM hapax.fail_delivery($1::text, $2::text, $3::bytea, $4::text, $5::text::integer, $6::text::boolean, $7::text, $8::text,
  $9::text::jsonb, $10::text, $11::text::interval, $12::text::interval)`;

export const SCHEMA_VERSION =
  "SELECT version::text AS version, works_with::text AS works_with FROM hapax.schema_version()";

"""The statements that are sent, with parameters as `$1`, each named once and in order.

Everything goes and comes in types that every driver spells alike: texts, bytes, numbers.
"""

from __future__ import annotations

SCHEMA_VERSION_NEEDED = 10

SCHEMA_VERSION = "SELECT version, works_with FROM hapax.schema_version()"

BEGIN = """SELECT decision, operation::text, fence, status, headers::text, body, retry_after,
       differs, date_part('epoch', expires_at)
FROM hapax.begin_bytes($1, $2, $3, $4, $5, $6, $7, make_interval(secs => $8),
       make_interval(secs => $9), make_interval(secs => $10))"""

FINISH = "SELECT hapax.finish($1::uuid, $2::bigint, $3::integer, $4::text::jsonb, $5::bytea)"

FAIL = "SELECT hapax.fail($1::uuid, $2::bigint, $3::integer, $4::text::jsonb, $5::bytea)"

EMIT = """SELECT hapax.emit($1, $2, $3::bytea, $4::text::jsonb, $5,
       coalesce($6::text::uuid, gen_random_uuid()))::text"""

FIRST_DELIVERY = """SELECT hapax.first_delivery($1, $2, $3::bytea, $4, make_interval(secs => $5),
       make_interval(secs => $6))"""

FAIL_DELIVERY = """SELECT attempts, is_over
FROM hapax.fail_delivery($1, $2, $3::bytea, $4, $5::integer, $6::boolean, $7, $8,
       $9::text::jsonb, $10, make_interval(secs => $11), make_interval(secs => $12))"""

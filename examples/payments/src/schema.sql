-- Services that start together make these tables one after the other.
SELECT pg_advisory_xact_lock(7009);

-- Nothing here keeps an order from being paid twice: that is what the keys are for.
CREATE TABLE IF NOT EXISTS payments (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id  text NOT NULL,
    charge    text NOT NULL,
    cents     bigint NOT NULL,
    paid_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A mail has a natural key: there is one of a kind for a payment.
CREATE TABLE IF NOT EXISTS mail_log (
    payment   bigint NOT NULL REFERENCES payments,
    kind      text NOT NULL,
    state     text NOT NULL DEFAULT 'sending',
    PRIMARY KEY (payment, kind)
);

-- The shop's own tables. What Hapax needs is in a schema of its own: `hapax migrate`.
CREATE TABLE accounts (
    name      text PRIMARY KEY,
    cents     bigint NOT NULL CHECK (cents >= 0)
);

-- Nothing here keeps an order from being paid twice. That is Hapax's work.
CREATE TABLE payments (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id  text NOT NULL,
    account   text NOT NULL REFERENCES accounts,
    cents     bigint NOT NULL CHECK (cents > 0)
);

INSERT INTO accounts VALUES ('ada', 100000000), ('bob', 100000000), ('eve', 100);

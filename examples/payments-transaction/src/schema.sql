CREATE TABLE IF NOT EXISTS accounts (
    name      text PRIMARY KEY,
    cents     bigint NOT NULL
);

CREATE TABLE IF NOT EXISTS payments (
    id        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id  text NOT NULL,
    account   text NOT NULL,
    cents     bigint NOT NULL CHECK (cents > 0)
);

INSERT INTO accounts VALUES ('ada', 100000000), ('eve', 100) ON CONFLICT DO NOTHING;

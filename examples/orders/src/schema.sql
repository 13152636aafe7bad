-- Nothing here keeps an order from being mailed about twice.
CREATE TABLE IF NOT EXISTS orders (number text PRIMARY KEY, customer text NOT NULL);
CREATE TABLE IF NOT EXISTS mails (id bigserial PRIMARY KEY, order_number text NOT NULL, customer text NOT NULL);

-- Keys, the nonces that they have used, and who owns what.
CREATE TABLE credentials (
    subscription_key text PRIMARY KEY,
    secret text NOT NULL,
    tenant text NOT NULL
);
CREATE TABLE nonces (
    subscription_key text NOT NULL,
    timestamp bigint NOT NULL,
    nonce text NOT NULL,
    PRIMARY KEY (subscription_key, timestamp, nonce)
);
CREATE TABLE accounts (
    account_id text PRIMARY KEY,
    tenant text NOT NULL
);

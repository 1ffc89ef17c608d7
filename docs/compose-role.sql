-- The role of the service. `throughline migrate` with `postgres.direct_url` grants what it needs.
CREATE ROLE throughline LOGIN PASSWORD 'change-me';

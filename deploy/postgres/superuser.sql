-- The password of the superuser that runs this: POSTGRES_PASSWORD of the environment, which the image gives to a new
-- volume alone. Run by psql after schemas.sql, in whose session no statement is logged.

\getenv password POSTGRES_PASSWORD
ALTER ROLE CURRENT_USER PASSWORD :'password';

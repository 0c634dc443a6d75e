-- The search index is fed after a record is acknowledged: `indexed` says how far it has come. It is written in the same
-- transaction as the rows of the index, so that after a crash nothing is left out and nothing stands there twice. Up to
-- now every record was indexed as it was recorded.
INSERT INTO meta (name, value) VALUES ('indexed', max(
    coalesce((SELECT max(position) FROM record), 0), coalesce((SELECT max(position) FROM session), 0)));

-- How much of what came was kept. `level` is the capture level, `digest` the keyed digest of a body that was not kept as
-- it came, `commitment` what binds the exact bytes that are held until an ask closes. The hash covers all three.
ALTER TABLE record ADD COLUMN level TEXT NOT NULL DEFAULT 'full';
ALTER TABLE record ADD COLUMN digest BLOB;
ALTER TABLE record ADD COLUMN commitment BLOB;

-- The exact bytes behind an open ask. A row goes when the ask closes; the record stays as it is.
CREATE TABLE held (
    position INTEGER PRIMARY KEY,
    salt     BLOB NOT NULL,
    body     BLOB NOT NULL
) STRICT;

-- What can be searched: assembled messages and actions. A projection: it can be made again from the records.
-- `time` is in microseconds since 1970.
CREATE TABLE passage (
    id      INTEGER PRIMARY KEY,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    time    INTEGER NOT NULL,
    agent   TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    title   TEXT    NOT NULL,
    text    TEXT    NOT NULL
) STRICT;

CREATE INDEX passage_by_session ON passage (session, seq);

CREATE VIRTUAL TABLE passage_words USING fts5 (
    title, text, content = 'passage', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
);

-- What is removed leaves nothing in the index either.
INSERT INTO passage_words (passage_words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
    INSERT INTO passage_words (rowid, title, text) VALUES (new.id, new.title, new.text);
END;

CREATE TRIGGER passage_removed AFTER DELETE ON passage BEGIN
    INSERT INTO passage_words (passage_words, rowid, title, text) VALUES ('delete', old.id, old.title, old.text);
END;

-- Where retention cut a session: its records up to and with `seq` are gone, `hash` is that of the last of them.
-- The checkpoint with that number says the same, signed.
CREATE TABLE cut (
    session    TEXT    PRIMARY KEY,
    seq        INTEGER NOT NULL,
    hash       BLOB    NOT NULL,
    time       TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    checkpoint INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Signed statements about the heads. `document` is the checkpoint as it is exported; `position` is how far it looked.
CREATE TABLE checkpoint (
    number   INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    document TEXT    NOT NULL
) STRICT;

CREATE INDEX session_by_position ON session (position);

-- The highest position that retention has removed.
INSERT INTO meta (name, value) VALUES ('pruned', 0);

-- Facts about this file. `epoch` tells its cursors from those of any other file; `synced` is rewritten to force a sync.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES ('epoch', lower(hex(randomblob(16)))), ('synced', 0);

-- The log. Rows are only ever added. What `hash` covers, and how, is written in src/chain.rs.
CREATE TABLE record (
    position INTEGER PRIMARY KEY,
    session  TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    time     TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    protocol TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    door     TEXT    NOT NULL,
    key      TEXT    NOT NULL,
    turn     TEXT,
    action   TEXT,
    event_id TEXT,
    reader   INTEGER NOT NULL,
    body     BLOB    NOT NULL,
    findings TEXT,
    gate     TEXT,
    prev     BLOB    NOT NULL,
    hash     BLOB    NOT NULL
) STRICT;

CREATE UNIQUE INDEX record_by_session ON record (session, seq);
CREATE UNIQUE INDEX record_by_event ON record (key, event_id) WHERE event_id IS NOT NULL;
-- Banister's own facts are few among many events: the index leaves the events out.
CREATE INDEX record_by_kind ON record (kind, position) WHERE kind <> 'event';

-- Where each session stands: the head of its chain, and what a list of sessions shows.
CREATE TABLE session (
    session  TEXT    PRIMARY KEY,
    agent    TEXT    NOT NULL,
    protocol TEXT    NOT NULL,
    first    TEXT    NOT NULL,
    last     TEXT    NOT NULL,
    position INTEGER NOT NULL,
    seq      INTEGER NOT NULL,
    hash     BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

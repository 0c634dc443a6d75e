-- A journal of layout 1 with twelve records in three sessions, written by the code that had layout 1.
PRAGMA application_id = 1112429396;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES('epoch','27dd040aee876cb306e8bd6065c8a32a');
INSERT INTO meta VALUES('synced',0);
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
INSERT INTO record VALUES(1,'s_one',1,'2026-05-04T10:00:00Z','event','hook:claude-code','claude-code','socket','k_0','t_1','act_0','evt_0',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2030227d7d',NULL,NULL,X'0000000000000000000000000000000000000000000000000000000000000000',X'f7e82c47244ad952baa6b0180feb2ada8eeed02bccf47f0bbb54b4e9ba9535c0');
INSERT INTO record VALUES(2,'s_two',1,'2026-05-04T10:00:01Z','event','hook:claude-code','claude-code','socket','k_1','t_1',NULL,'evt_1',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2031227d7d',NULL,NULL,X'0000000000000000000000000000000000000000000000000000000000000000',X'87580ea622f0d53f620d20af1a7ecd9a4423b3a220ead059556e9ab47d814291');
INSERT INTO record VALUES(3,'s_three',1,'2026-05-04T10:00:02Z','event','hook:claude-code','claude-code','socket','k_0','t_1','act_2','evt_2',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2032227d7d',NULL,NULL,X'0000000000000000000000000000000000000000000000000000000000000000',X'93de11be48c2fc58e3c56f70e3f7faac2908189c617d139d4f395a0371f2748f');
INSERT INTO record VALUES(4,'s_one',2,'2026-05-04T10:00:03Z','event','hook:claude-code','claude-code','socket','k_1','t_1',NULL,'evt_3',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2033227d7d',NULL,NULL,X'f7e82c47244ad952baa6b0180feb2ada8eeed02bccf47f0bbb54b4e9ba9535c0',X'7650ef42f7b6f97fea00d76bc000a60f89a8bbee68e446effecc86cfe0f38e1b');
INSERT INTO record VALUES(5,'s_two',2,'2026-05-04T10:00:04Z','ask','hook:claude-code','claude-code','socket','k_0','t_1','act_4','evt_4',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2034227d7d',NULL,'{"decision":"ask","risk":"high"}',X'87580ea622f0d53f620d20af1a7ecd9a4423b3a220ead059556e9ab47d814291',X'5784f992127ad54bf2404fd6f2c9fd9e32580096c751c0f7cb5795688e66febc');
INSERT INTO record VALUES(6,'s_three',2,'2026-05-04T10:00:05Z','event','hook:claude-code','claude-code','socket','k_1','t_1',NULL,'evt_5',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2035227d7d',NULL,NULL,X'93de11be48c2fc58e3c56f70e3f7faac2908189c617d139d4f395a0371f2748f',X'e09bdc6eb17c540a907b3a9705b3782cff05f1770d05ae4ef7ebc05fb210196d');
INSERT INTO record VALUES(7,'s_one',3,'2026-05-04T10:00:06Z','event','hook:claude-code','claude-code','socket','k_0','t_1','act_6','evt_6',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2036227d7d',NULL,NULL,X'7650ef42f7b6f97fea00d76bc000a60f89a8bbee68e446effecc86cfe0f38e1b',X'74261d5da34594cb78aed6a927f65352d30a326d8483bb533f75823ba1ea4a63');
INSERT INTO record VALUES(8,'s_two',3,'2026-05-04T10:00:07Z','answer','hook:claude-code','claude-code','socket','k_1','t_1',NULL,'evt_7',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2037227d7d',NULL,NULL,X'5784f992127ad54bf2404fd6f2c9fd9e32580096c751c0f7cb5795688e66febc',X'c66de7472b8591b8b9dc425186d792f0faa5cbf9a71689b971991b14b04cf261');
INSERT INTO record VALUES(9,'s_three',3,'2026-05-04T10:00:08Z','event','hook:claude-code','claude-code','socket','k_0','t_1','act_8','evt_8',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f2038227d7d',NULL,NULL,X'e09bdc6eb17c540a907b3a9705b3782cff05f1770d05ae4ef7ebc05fb210196d',X'5562a9253a4d3ed388b4e1cf34d9e58c4f1595bff76575072db09085684655a8');
INSERT INTO record VALUES(10,'s_one',4,'2026-05-04T10:00:09Z','unreadable','hook:claude-code','claude-code','socket','k_1','t_1',NULL,'evt_9',1,X'00ff0a0d80','[{"code":"HOOK-01"}]',NULL,X'74261d5da34594cb78aed6a927f65352d30a326d8483bb533f75823ba1ea4a63',X'dbd15fc1ef5fb19ac4cf17eb8df5e923f30d1d978cad50445e370d3121ec1f11');
INSERT INTO record VALUES(11,'s_two',4,'2026-05-04T10:00:10Z','event','hook:claude-code','claude-code','socket','k_0','t_1','act_10','evt_10',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f203130227d7d',NULL,NULL,X'c66de7472b8591b8b9dc425186d792f0faa5cbf9a71689b971991b14b04cf261',X'd4b891419778abddc4fa9797790767dac7c1071f969d5978a297962f0d990501');
INSERT INTO record VALUES(12,'s_three',4,'2026-05-04T10:00:11Z','event','hook:claude-code','claude-code','socket','k_1','t_1',NULL,'evt_11',1,X'7b22746f6f6c5f696e707574223a7b22636f6d6d616e64223a226563686f203131227d7d',NULL,NULL,X'5562a9253a4d3ed388b4e1cf34d9e58c4f1595bff76575072db09085684655a8',X'37c882fb1194d95f068fe414147eb575c0125419e9bb40bec1412015cfd64137');
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
INSERT INTO session VALUES('s_one','claude-code','hook:claude-code','2026-05-04T10:00:00Z','2026-05-04T10:00:09Z',10,4,X'dbd15fc1ef5fb19ac4cf17eb8df5e923f30d1d978cad50445e370d3121ec1f11');
INSERT INTO session VALUES('s_three','claude-code','hook:claude-code','2026-05-04T10:00:02Z','2026-05-04T10:00:11Z',12,4,X'37c882fb1194d95f068fe414147eb575c0125419e9bb40bec1412015cfd64137');
INSERT INTO session VALUES('s_two','claude-code','hook:claude-code','2026-05-04T10:00:01Z','2026-05-04T10:00:10Z',11,4,X'd4b891419778abddc4fa9797790767dac7c1071f969d5978a297962f0d990501');
CREATE UNIQUE INDEX record_by_session ON record (session, seq);
CREATE UNIQUE INDEX record_by_event ON record (key, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX record_by_kind ON record (kind, position) WHERE kind <> 'event';
COMMIT;
PRAGMA user_version = 1;

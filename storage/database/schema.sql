CREATE TABLE "sessions" (
   "id" INTEGER PRIMARY KEY,
   "name" TEXT,
   "kind" TEXT,
   "source" TEXT,
   "started_ns" INTEGER,
   "ended_ns" INTEGER,
   "kiebitz_version" TEXT,
   "continues" INTEGER,
   "note" TEXT,
   "streams_before" INTEGER,
   "games_before" INTEGER,
   "messages_before" INTEGER,
   "events_before" INTEGER
);
CREATE TABLE "streams" (
   "id" INTEGER PRIMARY KEY,
   "session_id" INTEGER REFERENCES "sessions"("id"),
   "protocol" TEXT,
   "transport" TEXT,
   "client" TEXT,
   "server" TEXT,
   "opened_ns" INTEGER,
   "closed_ns" INTEGER,
   "close_reason" TEXT,
   "player" TEXT
);
CREATE TABLE "chunks" (
   "id" INTEGER PRIMARY KEY,
   "stream_id" INTEGER REFERENCES "streams"("id"),
   "direction" TEXT,
   "ts_ns" INTEGER,
   "offset" INTEGER,
   "length" INTEGER,
   "data" BLOB
);
CREATE TABLE "alterations" (
   "id" INTEGER PRIMARY KEY,
   "stream_id" INTEGER REFERENCES "streams"("id"),
   "direction" TEXT,
   "ts_ns" INTEGER,
   "chunk_id" INTEGER,
   "offset" INTEGER,
   "length" INTEGER,
   "action" TEXT,
   "rule" TEXT,
   "sent_ns" INTEGER,
   "name" TEXT,
   "fields" TEXT,
   "original" BLOB
);
CREATE TABLE "tables" (
   "id" INTEGER PRIMARY KEY,
   "session_id" INTEGER REFERENCES "sessions"("id"),
   "protocol" TEXT,
   "server" TEXT
);
CREATE TABLE "games" (
   "id" INTEGER PRIMARY KEY,
   "table_id" INTEGER REFERENCES "tables"("id"),
   "session_id" INTEGER REFERENCES "sessions"("id"),
   "protocol" TEXT,
   "label" TEXT,
   "started_ns" INTEGER,
   "ended_ns" INTEGER,
   "result" TEXT
);
CREATE TABLE "events" (
   "id" INTEGER PRIMARY KEY,
   "table_id" INTEGER REFERENCES "tables"("id"),
   "game_id" INTEGER REFERENCES "games"("id"),
   "session_id" INTEGER REFERENCES "sessions"("id"),
   "seq" INTEGER,
   "ts_ns" INTEGER,
   "kind" TEXT,
   "actor" TEXT,
   "data" TEXT,
   "changes" TEXT,
   "sentence" TEXT
);
CREATE TABLE "messages" (
   "id" INTEGER PRIMARY KEY,
   "stream_id" INTEGER REFERENCES "streams"("id"),
   "direction" TEXT,
   "ts_ns" INTEGER,
   "name" TEXT,
   "fields" TEXT,
   "offset" INTEGER,
   "length" INTEGER,
   "game_id" INTEGER REFERENCES "games"("id"),
   "event_id" INTEGER REFERENCES "events"("id")
);
CREATE TABLE "diagnostics" (
   "id" INTEGER PRIMARY KEY,
   "stream_id" INTEGER REFERENCES "streams"("id"),
   "direction" TEXT,
   "message_id" INTEGER REFERENCES "messages"("id"),
   "ts_ns" INTEGER,
   "severity" TEXT,
   "grp" TEXT,
   "code" TEXT,
   "text" TEXT,
   "offset" INTEGER,
   "length" INTEGER,
   "expected" TEXT,
   "clause" TEXT,
   "blame" TEXT
);
CREATE TABLE "snapshots" (
   "table_id" INTEGER REFERENCES "tables"("id"),
   "seq" INTEGER,
   "ts_ns" INTEGER,
   "state" TEXT,
   PRIMARY KEY ("table_id", "seq")
);
CREATE TABLE "taps" (
   "id" INTEGER PRIMARY KEY,
   "session_id" INTEGER REFERENCES "sessions"("id"),
   "name" TEXT,
   "run" TEXT,
   "items" INTEGER,
   "clock_ns" INTEGER,
   "origin_ns" INTEGER,
   "sequence" INTEGER
);
CREATE TABLE "tapped" (
   "id" INTEGER PRIMARY KEY REFERENCES "streams"("id"),
   "tap_id" INTEGER REFERENCES "taps"("id"),
   "number" INTEGER
);
CREATE VIEW "v_messages" AS SELECT m.id, x.id AS session_id, x.name AS session, m.id - x.messages_before AS number, strftime('%Y-%m-%dT%H:%M:%S', m.ts_ns / 1000000000, 'unixepoch') || printf('.%06dZ', m.ts_ns / 1000 % 1000000) AS time, (m.ts_ns - x.started_ns) / 1e9 AS seconds, s.id - x.streams_before AS stream, s.client, s.player, s.server, s.protocol, m.direction, m.name, m.fields, m.offset, m.length, m.game_id - x.games_before AS game, m.event_id - x.events_before AS event, coalesce(e.sentence, e.kind || ' ' || e.data) AS sentence FROM messages AS m JOIN streams AS s ON s.id = m.stream_id JOIN sessions AS x ON x.id = s.session_id LEFT JOIN events AS e ON e.id = m.event_id;
CREATE VIEW "v_events" AS SELECT e.id, x.id AS session_id, x.name AS session, e.id - x.events_before AS number, strftime('%Y-%m-%dT%H:%M:%S', e.ts_ns / 1000000000, 'unixepoch') || printf('.%06dZ', e.ts_ns / 1000 % 1000000) AS time, (e.ts_ns - x.started_ns) / 1e9 AS seconds, t.server, t.protocol, e.game_id - x.games_before AS game, e.kind, e.actor AS player, coalesce(e.sentence, e.kind || ' ' || e.data) AS sentence, e.data FROM events AS e JOIN tables AS t ON t.id = e.table_id JOIN sessions AS x ON x.id = e.session_id;
CREATE VIEW "v_games" AS SELECT g.id, x.id AS session_id, x.name AS session, g.id - x.games_before AS number, strftime('%Y-%m-%dT%H:%M:%S', g.started_ns / 1000000000, 'unixepoch') || printf('.%06dZ', g.started_ns / 1000 % 1000000) AS time, (g.started_ns - x.started_ns) / 1e9 AS seconds, t.server, g.protocol, g.label, strftime('%Y-%m-%dT%H:%M:%S', g.ended_ns / 1000000000, 'unixepoch') || printf('.%06dZ', g.ended_ns / 1000 % 1000000) AS ended, (g.ended_ns - g.started_ns) / 1e9 AS took, g.result FROM games AS g JOIN tables AS t ON t.id = g.table_id JOIN sessions AS x ON x.id = g.session_id;
CREATE VIEW "v_diagnostics" AS SELECT d.id, x.id AS session_id, x.name AS session, strftime('%Y-%m-%dT%H:%M:%S', d.ts_ns / 1000000000, 'unixepoch') || printf('.%06dZ', d.ts_ns / 1000 % 1000000) AS time, (d.ts_ns - x.started_ns) / 1e9 AS seconds, d.severity, d.grp, d.code, d.text, d.blame, CASE d.blame WHEN 'client' THEN coalesce(s.player, s.client) WHEN 'server' THEN s.server END AS culprit, s.id - x.streams_before AS stream, s.client, s.player, s.server, s.protocol, d.direction, d.message_id - x.messages_before AS message, m.name, m.event_id - x.events_before AS event, d.offset, d.length, d.expected, d.clause FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id JOIN sessions AS x ON x.id = s.session_id LEFT JOIN messages AS m ON m.id = d.message_id

-- A title goes to the session whose own row it names, and is assigned anew when another session has the row.
alter table landmark add column inherited integer not null default 0;
create index summary_by_row on summary (row_key);

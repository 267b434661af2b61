-- Gaps heal. `why` is a word of the retry policy, `reason` what was seen; `refusals` are the tries that failed because of
-- the thing itself; `version` is that of the connector and reader which tried last; `ended` says why nobody tries any
-- more. While somebody tries, `leased_to` says who, and `leased_until` when that ends even if nobody says so.
alter table gap add column why text not null default 'unreadable';
alter table gap add column refusals integer not null default 0;
alter table gap add column version text not null default '';
alter table gap add column ended text;
alter table gap add column leased_to text;
alter table gap add column leased_until bigint;
create index gap_by_status on gap (instance, status);

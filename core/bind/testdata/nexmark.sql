-- q0
select auction, bidder, price, dateTime, extra from bid;

-- q1
select auction, bidder, price * 0.908 as price, dateTime, extra from bid;

-- q2
select auction, price from bid where auction % 123 = 0;

-- q3
select p.name, p.city, p.state, a.id from auction a join person p on a.seller = p.id where a.category = 10 and p.state in ('OR','ID','CA');

-- q4
select category, avg(final) from (select a.id, a.category, max(b.price) as final from auction a join bid b on a.id = b.auction
   where b.dateTime between a.dateTime and a.expires group by a.id, a.category) t group by category;

-- q5
with h as (select auction, time_bucket(interval '2 seconds', dateTime) - i * interval '2 seconds' as ws from bid, range(5) r(i)),
   c as (select auction, ws, count(*) as n from h group by auction, ws), m as (select ws, max(n) as mx from c group by ws)
   select c.auction, c.n, c.ws from c join m on c.ws = m.ws and c.n >= m.mx;

-- q7
with w as (select *, time_bucket(interval '10 seconds', dateTime) as ws from bid), m as (select ws, max(price) as mx from w group by ws)
   select w.auction, w.price, w.bidder, w.dateTime, w.extra from w join m on w.ws = m.ws and w.price = m.mx;

-- q8
with p as (select distinct id, name, time_bucket(interval '10 seconds', dateTime) as ws from person),
   a as (select distinct seller, time_bucket(interval '10 seconds', dateTime) as ws from auction)
   select p.id, p.name, p.ws from p join a on p.id = a.seller and p.ws = a.ws;

-- q9
select id, price, bidder, bts from (select a.id, b.price, b.bidder, b.dateTime as bts, row_number() over (partition by a.id order by b.price desc, b.dateTime) as rn
   from auction a join bid b on a.id = b.auction where b.dateTime between a.dateTime and a.expires) t where rn <= 1;

-- q11
with g as (select bidder, dateTime, case when dateTime - lag(dateTime) over (partition by bidder order by dateTime) < interval '10 seconds' then 0 else 1 end as nw from bid),
   s as (select bidder, dateTime, sum(nw) over (partition by bidder order by dateTime rows unbounded preceding) as sid from g)
   select bidder, count(*) as n, min(dateTime) as st, max(dateTime) as en from s group by bidder, sid;

-- q15
select strftime(dateTime, '%Y-%m-%d') as day, count(*) as total, count(*) filter (price < 10000) as r1, count(*) filter (price >= 10000 and price < 1000000) as r2,
   count(*) filter (price >= 1000000) as r3, count(distinct bidder) as tb, count(distinct bidder) filter (price < 10000) as b1, count(distinct auction) as ta,
   count(distinct auction) filter (price < 10000) as a1 from bid group by 1;

-- q16
select channel, strftime(dateTime, '%Y-%m-%d') as day, count(*) as total, count(distinct bidder) as tb, count(distinct auction) as ta from bid group by 1, 2;

-- q17
select auction, strftime(dateTime, '%Y-%m-%d') as day, count(*) as n, count(*) filter (price < 10000) as r1, count(*) filter (price >= 10000 and price < 1000000) as r2,
   count(*) filter (price >= 1000000) as r3, min(price) as mn, max(price) as mx, avg(price) as av, sum(price) as sm from bid group by 1, 2;

-- q18
select auction, bidder, price, dateTime from (select *, row_number() over (partition by bidder, auction order by dateTime desc) as rn from bid) t where rn <= 1;

-- q19
select auction, bidder, price, rn from (select *, row_number() over (partition by auction order by price desc) as rn from bid) t where rn <= 10;

-- q20
select b.auction, b.bidder, b.price, b.channel, a.itemName, a.initialBid from bid b join auction a on b.auction = a.id where a.category = 10;

-- q22
select auction, bidder, price, channel, split_part(url, '/', 4) as dir1, split_part(url, '/', 5) as dir2, split_part(url, '/', 6) as dir3 from bid;

-- q5_windows
select x.auction, x.num, x.ws from (select auction, count(*) as num, window_start as ws, window_end as we
   from table(hop(table bid, descriptor(dateTime), interval '2' second, interval '10' second)) group by auction, window_start, window_end) x
   join (select max(num) as maxn, ws, we from (select count(*) as num, window_start as ws, window_end as we
   from table(hop(table bid, descriptor(dateTime), interval '2' second, interval '10' second)) group by auction, window_start, window_end) c group by ws, we) m
   on x.ws = m.ws and x.we = m.we and x.num >= m.maxn;

-- q7_windows
select b.auction, b.price, b.bidder, b.dateTime, b.extra from bid b join (select max(price) as maxprice, window_end as ts
   from table(tumble(table bid, descriptor(dateTime), interval '10' second)) group by window_start, window_end) m
   on b.price = m.maxprice where b.dateTime between m.ts - interval '10' second and m.ts;

-- q8_windows
select p.id, p.name, p.ws from (select id, name, window_start as ws, window_end as we from table(tumble(table person, descriptor(dateTime), interval '10' second))
   group by id, name, window_start, window_end) p join (select seller, window_start as ws, window_end as we from table(tumble(table auction, descriptor(dateTime), interval '10' second))
   group by seller, window_start, window_end) a on p.id = a.seller and p.ws = a.ws and p.we = a.we;

-- q11_windows
select bidder, count(*) as n, window_start as st, window_end as en from table(session(table bid partition by bidder, descriptor(dateTime), interval '10' second)) group by bidder, window_start, window_end;

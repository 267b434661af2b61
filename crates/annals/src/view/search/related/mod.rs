//! Words that people use for the same thing, so that a question finds an answer in other words. Only English: a few hundred
//! everyday and technical words that are listed here, and a table made from a dictionary. They count for little beside the
//! words that were typed.
//!
//! Longer than other files because it is a list.

mod table;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use annals_core::stem_of;

/// Words related to one that was typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RelatedWords {
    /// They mean about the same.
    pub close: Vec<&'static str>,
    /// They are written about the same things.
    pub loose: Vec<&'static str>,
}

/// Words related to this one, itself and its forms excluded.
pub fn related_words(word: &str) -> RelatedWords {
    let [mut close, mut loose] = table::close_and_loose(word);
    for listed in listed_words(word) {
        if !close.contains(listed) {
            close.push(listed);
        }
    }
    loose.retain(|other| !close.contains(other));
    RelatedWords { close, loose }
}

/// Listed words related to this one or to its stem. Forms of them are not listed.
fn listed_words(word: &str) -> &'static [&'static str] {
    static BY_STEM: LazyLock<HashMap<Cow<'static, str>, Vec<&'static str>>> = LazyLock::new(|| {
        let mut by_stem: HashMap<Cow<'static, str>, Vec<&'static str>> = HashMap::new();
        for group in LISTED.lines() {
            for word in group.split(' ') {
                let related = by_stem.entry(stem_of(word)).or_default();
                let others = group.split(' ').filter(|other| stem_of(other) != stem_of(word));
                related.extend(others.filter(|other| !related.contains(other)).collect::<Vec<_>>());
            }
        }
        by_stem
    });
    BY_STEM.get(stem_of(word).as_ref()).map_or(&[], Vec::as_slice)
}

/// One group a line.
const LISTED: &str = "\
accident crash collision injury
account profile user login
ache pain hurt sore
activity hobby pastime
adopt rescue
afraid scared fear frightened anxious worried nervous
age old years birthday
aim goal target objective
allergy intolerance allergic
angry upset furious mad annoyed
animal pet dog cat puppy kitten
answer reply response
apartment flat home house condo
appointment meeting date
argue quarrel fight dispute argument
art painting drawing sculpture
ask request question
attend join visit participate
author writer
autumn fall
award prize medal trophy
baby infant newborn
bake cook oven
band group orchestra
bank account money
beach sea ocean coast shore
beautiful pretty lovely gorgeous
begin start launch commence
bicycle bike cycling
big large huge
bike bicycle motorcycle
bill invoice receipt
birthday anniversary party celebration
boat ship ferry sail
book novel story
boss manager supervisor
boyfriend girlfriend partner
break broken damage crack
brother sister sibling
buy purchase order
calm relax soothing peaceful
camp camping tent hike
car vehicle automobile auto
career job profession occupation work
celebrate party celebration anniversary
charity volunteer donate nonprofit
cheap inexpensive affordable
check verify inspect examine
child kid son daughter toddler
choose pick select decide
church temple mosque faith religion
city town
class course lesson workshop
clean tidy wash
clothes clothing outfit dress
cloud aws azure
coach trainer mentor
colleague coworker teammate
college university school degree
comfort support console
company firm business employer
compete competition contest tournament
complain complaint
concert show gig performance
contract agreement deal
cook meal recipe dish
cost price expense
country nation abroad
couple partner relationship
create make build
cure treat therapy treatment
customer client buyer
cut trim shorten reduce
dad father parent
dance ballet dancing
danger risk hazard
daughter child kid girl
dead died death funeral
delete remove drop erase
depressed sad unhappy depression
dessert cake pie sweet
diet food eat nutrition
dinner meal supper
disease illness sick
doctor physician clinic hospital
documents papers passport
dog puppy pet
drawing sketch art
dream goal wish hope
earn income salary money
eat food meal
education school degree study
employee worker staff
engaged fiance engagement
enjoy love like
error bug failure exception
evening night
event party festival conference
exam test
exercise workout gym training fitness
expensive costly
fail break crash
family relatives parents
famous popular
farm farmer
fast quick rapid speed
father dad parent
favorite favourite preferred
fear afraid scared
feedback review opinion
festival fair carnival
film movie cinema
finish complete end
fix repair solve resolve
flight plane airport
flower plant garden
food meal dish eat
foreign abroad overseas
friend buddy pal
fun enjoyable
game play match
garden plant yard
gift present
goal aim target plan
grandma grandmother grandparent
grandpa grandfather grandparent
growth increase
guest visitor
guitar instrument music
gym workout fitness
hair haircut
happy glad joy delighted excited
hate dislike
health medical wellness
help assist support aid
hike hiking trail mountain
hobby pastime interest
holiday vacation trip
home house apartment
hometown origin birthplace
hospital clinic doctor
hotel accommodation inn hostel cabin
house home residence
hurt injure injury wound
husband spouse partner
idea suggestion proposal
illness disease sick
important significant
improve better enhance
injury wound hurt fracture
inspire motivate inspiration motivation
instrument violin guitar piano trumpet drums
insurance insurer policy claim
internship job position
interview hiring candidate applicant
invite invitation guest
island beach
job work position role career
journey trip travel
kid child
kitchen cook
lake river water
language spanish french german
lawyer attorney legal
learn study
leave quit resign depart
lesson class course
letter mail message
library books
lose lost misplace
love like enjoy adore
lunch meal
main primary
manager boss head lead
marathon race run
market shop store
marry wedding spouse
meal dish dinner lunch breakfast
medicine drug medication pill
meditation yoga mindfulness
meet encounter
message mail email
mom mother parent
money cash funds savings finance
mother mom parent
mountain hike climb peak
move relocate relocation
movie film cinema
museum gallery exhibition exhibit
music song band
musician singer band
nature outdoors wilderness forest
near close
neighborhood area district
neighbor neighbour
nervous anxious stress
noise sound loud
novel book fiction
nurse hospital
occupation job profession
office workplace
organize arrange plan
outdoors nature outside
paint painting draw art
parents mother father mom dad
park playground
party celebration event
patient client
perform performance show concert
pet dog cat animal
phone mobile cell smartphone
photo picture image photograph
physician doctor
piano instrument keyboard
picture photo image painting
plan schedule intend
plant tree flower vegetable
play game perform
poem poetry
politics election vote
pottery ceramics clay
practice practise train rehearse
pregnant baby expecting
prepare ready
present gift
prevent avoid stop
price cost
problem issue bug trouble
profession job career occupation
program programme software
progress advance
project task
promote promotion
protect secure guard
proud pride
quarrel argument fight
quiet silent calm
quit leave stop resign
race marathon run competition
rain storm weather
read book
receive get
recipe cook dish
recommend suggest advise recommendation
recover heal recovery
relationship partner dating couple
relative uncle aunt cousin
relax rest unwind
religion faith church
rent lease
repair fix mend
research study investigate
restaurant cafe diner
result outcome
retire retirement pension
road street route
run jog jogging
sad unhappy upset
safe secure safety
salary pay wage income
save savings
school class education
sea ocean beach
sell sale
ship boat
shoes sneakers boots
shop store boutique market
show exhibition performance
sibling brother sister
sick ill illness
sing song choir
single unmarried divorced
sister sibling
skill ability talent
sleep insomnia nap
small little tiny
snow winter ski
soccer football
solve fix resolve
son boy child
song music track
speech talk presentation
spend cost
spouse husband wife
sport athletic exercise
start begin found
store shop
storm hurricane weather
stress anxiety pressure
study research learn
suggest recommend advice
support help encourage
surgery operation
surprise unexpected
swim pool
symbol meaning represent
talent skill gift
talk speech conversation
teacher instructor professor tutor
team group squad
therapy counseling therapist psychologist
ticket pass
tired exhausted fatigue
tournament competition championship
town city village
toy doll game
tradition custom
train railway subway
travel trip journey visit
tree plant forest
trip travel journey vacation tour
trouble problem difficulty
uncle relative
university college academy
upset sad angry
vacation holiday trip
vegetable plant salad
vegetarian vegan meatless
vehicle car truck
visit trip travel
volunteer charity help
walk hike stroll
water drink
weather rain sun
wedding marriage ceremony
weekend saturday sunday
wife spouse partner
win victory prize
winter snow cold
wish hope want
woman lady female
work job
workout exercise gym
worry concern anxious
write author compose
yoga meditation
abort cancel stop
access permission authorization
admin administrator
alert notification alarm
amount quantity sum
api endpoint interface
attach attachment
auth authentication login
automate automatic automation
backend server
backup snapshot restore recovery
ban block
benchmark performance
block lock prevent
branch merge
browser chrome firefox safari
bug error defect issue
build compile
bundle package
button control
cache caching stale
certificate tls ssl https
change modify edit update
cleanup prune
clone copy duplicate
cluster kubernetes node
code source program
commit push
compress zip gzip shrink
config settings options
connection socket network
container docker pod image
convert transform translate
copy duplicate clone
crash panic segfault abort
credentials password secret key token
css style stylesheet
csv spreadsheet excel
cursor pagination
dashboard panel
data records rows
database db postgres sqlite mysql sql
date day time
deadlock lock
debug diagnose
delay latency lag
delete remove purge
dependency library package
deploy release rollout ship
deprecated obsolete outdated
diff patch
directory folder
disk storage space
docs documentation manual
domain dns
download fetch
downtime outage unavailable
duplicate twice double
email mail message
encode encoding utf
encrypt encryption
error exception failure
execute run
export import
fast performance quick
feature functionality
file document
filter search
flag toggle switch
flaky unstable intermittent unreliable
folder directory
format layout
frontend ui client browser
function method procedure
graph chart plot diagram
hang freeze stuck
hash digest checksum
host server machine
hotkey shortcut
icon image
import export load
index indices
install setup
interface ui
javascript js typescript
job task worker queue
join merge
key token secret
kill terminate
latency delay slow
layout design
leak memory
library package dependency module
limit quota throttle rate
link url
linter lint
load import
log logging trace
login signin authentication session
loop iterate
memory ram heap oom
merge combine join
message notification
method function
migrate migration upgrade move
mobile phone android ios
mock stub fake
monitor observability metrics
network connection
notebook jupyter
notify notification alert
optimize speed performance faster
outage downtime incident
package library module
page website site
parse parser
password credentials
payment checkout billing pay
performance speed slow fast
permission access role
pipeline ci workflow
plugin extension addon
port socket
process thread worker
production prod live
proxy gateway
query sql statement
queue job worker
race concurrency
record row entry
refactor rewrite restructure
regex pattern
release deploy version
remote ssh
remove delete drop
rename move
replace substitute
repository repo git
request call
restore recover backup
retry attempt
rollback revert undo
route endpoint url
row record
schedule cron timer
schema table column
screen display
script command
search lookup find
security vulnerability
server backend host
settings config preferences
setup install configuration
shell terminal bash
shrink smaller reduce
signup registration register
slow latency performance
socket websocket connection
sort order
spam junk
spreadsheet csv excel
state status
stop abort cancel
storage disk s3
stream streaming
style css theme
sync synchronize
table schema
task job
template layout
terminal shell console
test spec tests
theme dark style
thread concurrency
throttle rate limit
timeout deadline
timezone utc date
token key
tool utility
trace log
traffic requests
undo revert
update upgrade
upload transfer
url link address
user account person
validate validation check
variable env
vendor supplier provider
version release
video movie
view page
worker thread job
yaml toml json";

#[cfg(test)]
mod tests {
    use super::{LISTED, RelatedWords, listed_words, related_words};

    #[test]
    fn listed_words_are_found_by_any_form() {
        assert!(listed_words("vehicles").contains(&"car"));
        assert!(listed_words("car").contains(&"vehicle"));
        assert!(!listed_words("car").contains(&"car"));
        assert!(listed_words("zebra").is_empty());
        assert!(LISTED.lines().all(|group| group.split(' ').count() > 1));
    }

    #[test]
    fn the_list_and_the_table_are_one() {
        let related = related_words("car");
        assert!(related.close.contains(&"vehicle") && related.close.contains(&"automobile"), "{related:?}");
        assert!(related.loose.iter().all(|word| !related.close.contains(word)), "{related:?}");
        assert_eq!(related_words("xyzzy"), RelatedWords::default());
    }
}

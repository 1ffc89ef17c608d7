//! The words of each class, lower case and sorted.

use super::words::Class;

/// One entry for each class, in the order of the classes.
pub(super) const LISTS: &[(Class, &str)] = &[
    (Class::Conjunctions, "although and because but plus since so though while"),
    (
        Class::ClauseStarts,
        "he her his i i'd i'll i'm i've im it it's let's my our please remind she that their \
         there they this todo we we'll we're we've you your",
    ),
    (Class::Copulas, "are has have is was were will"),
    (
        Class::Openers,
        "actually additionally also although and anyway apologies background basically because \
         besides btw but clearly context correcting correction currently edit finally fortunately \
         fyi heads-up hello hey hi hmm honestly however info luckily meanwhile nope note \
         obviously oh ok okay oops p.s personally please plus ps reminder since so sorry thanks \
         then though today um unfortunately update updated wait well whoops yeah yes",
    ),
    (
        Class::SpokenOpeners,
        "again cool first great nice no now perfect right second sure thanks true well yes",
    ),
    (
        Class::Adverbs,
        "actually all already also basically both currently definitely even exactly finally just \
         mainly mostly now officially only originally personally presently primarily really \
         recently still then",
    ),
    (
        Class::Hedges,
        "assume assuming could couldn't e.g hopefully hypothetical hypothetically i'd if imagine \
         maybe might perhaps possibly presumably pretend probably say suppose supposing unless \
         we'd what-if whether wish wonder would wouldn't",
    ),
    (
        Class::Reports,
        "according allegedly answered apparently argued argues asked asks assumed assumes believe \
         believed believes claimed claims dreamed dreamt explained guess guesses heard hears hope \
         hopes insisted insists mentioned mentions read reckon reckons replied reportedly rumor \
         rumors rumour said says suggested suggests supposedly think thinks thought told",
    ),
    (Class::OwnReports, "asked explained mentioned said told"),
    (
        Class::NotNouns,
        "= about all also although always am and any anything are aren't as ask asks at be \
         because been being both but by can can't check could did didn't do does doesn't don't \
         each even every everyone everything explain find fix from get gets give go goes got had \
         has have he hello help her here hi him his how i i'm i've if in into is isn't it its \
         just know knows let let's look make makes may maybe me might most must need needs never \
         no nobody none not nothing of-course on once only or perhaps please rewrite said say \
         says see shall she should show since so some someone something sometimes summarise \
         summarize tell tells than that their them then there these they think thinks this those \
         though to today told tomorrow tonight too translate us use using very via want wants was \
         we were what when where which while who whom whose why will with without won't would \
         write yes yesterday you your",
    ),
    (
        Class::Talk,
        "advice answer answers apologies assumption bad best bet bug case catch code concern \
         conclusion date day difference equation error errors example fact fault feeling file \
         first following former function goal-post guess head hope hunch hypothesis idea \
         impression input issue issues last latter line lines math message mind mistake next only \
         opinion output pleasure point problem problems prompt query question questions reason \
         request rest result results same second sentence step story sum take task text thanks \
         thing things thought thoughts time total trick truth turn understanding way weather \
         worst",
    ),
    (
        Class::Properties,
        "address age allergies allergy birthday blood-type budget car color colour company \
         country currency database deadline degree diet editor email employer favorite favourite \
         field framework goal hobbies hobby hometown ide job language languages location major \
         name nationality nickname occupation os pet phone port preference profession pronouns \
         religion role salary school sign size specialty sport stack team timezone title \
         university username website zone",
    ),
    (
        Class::Fresh,
        "actual adjusted correct corrected current default final latest main new official overall \
         planned present primary real revised updated usual",
    ),
    (Class::Generic, "address count date key limit name number rate size time"),
    (
        Class::Family,
        "accountant assistant aunt baby boss boyfriend brother buddy cat child client coach \
         cofounder colleague cousin coworker dad daughter dentist doctor dog father fiance fiancé \
         fiancée flatmate friend girlfriend granddaughter grandfather grandma grandmother grandpa \
         grandson hamster horse husband kid kitten landlady landlord lawyer manager mentor mom \
         mother mum neighbor neighbour nephew niece nurse parents parrot partner pet professor \
         puppy rabbit roommate sister son spouse stepfather stepmother teacher teammate therapist \
         tortoise trainer turtle tutor twin uncle wife",
    ),
    (
        Class::Many,
        "aunt brother buddy cat child client cofounder colleague cousin coworker daughter doctor \
         dog flatmate friend granddaughter grandfather grandma grandmother grandpa grandson \
         hamster horse kid kitten neighbor neighbour nephew niece parrot pet professor puppy \
         rabbit roommate sister son student teacher teammate twin uncle",
    ),
    (
        Class::Animals,
        "budgie cat cats chickens dog dogs fish goldfish guinea hamster horse kitten lizard \
         parrot pet pets puppy rabbit snake tortoise turtle",
    ),
    (
        Class::Things,
        "app application boat bot bridge building client cluster company database db device \
         factory host laptop library machine model office organisation organization platform \
         printer product project repo repository robot router school server service shop startup \
         store studio system team tool truck van vm website",
    ),
    (
        Class::Occupations,
        "accountant agent analyst apprentice architect assistant attorney barista captain ceo cfo \
         chef clerk coach consultant coo cook cto dba dentist devops economist founder freelance \
         freelancer guard host intern judge lawyer mechanic midwife model nurse paralegal \
         paramedic pilot poet postdoc priest ranger scientist sergeant soldier sre statistician \
         student surgeon technician therapist undergrad vet",
    ),
    (
        Class::NotOccupations,
        "beginner believer breadwinner brother christian citizen civilian collector customer \
         cyclist dad dreamer extrovert fan father feminist follower foreigner gamer holder \
         introvert loser lover member minor mom mother mum newcomer optimist outsider owl owner \
         parent perfectionist person pessimist resident runner sibling sister smoker speaker \
         stranger subscriber sufferer supporter survivor swimmer user vegetarian walker",
    ),
    (
        Class::Diets,
        "celiac coeliac gluten-free halal keto kosher omnivore pescatarian vegan vegetarian",
    ),
    (
        Class::States,
        "ambidextrous asthmatic autistic bilingual blind color-blind colorblind colour-blind \
         colourblind deaf diabetic dyslexic extroverted introverted lactose left-handed \
         nearsighted pregnant retired right-handed self-employed short-sighted trilingual \
         unemployed",
    ),
    (Class::Marital, "divorced engaged married separated single widowed"),
    (
        Class::Nations,
        "albanian algerian american argentinian armenian australian austrian azerbaijani \
         bangladeshi belgian bolivian brazilian british bulgarian cameroonian canadian chilean \
         chinese colombian croatian cuban cypriot czech danish dutch ecuadorian egyptian english \
         estonian ethiopian filipino finnish french georgian german ghanaian greek hungarian \
         icelandic indian indonesian iranian iraqi irish israeli italian jamaican japanese \
         jordanian kazakh kenyan korean latvian lebanese lithuanian malaysian maltese mexican \
         moroccan nepalese nigerian norwegian pakistani palestinian peruvian polish portuguese \
         romanian russian saudi scottish serbian singaporean slovak slovenian spanish swedish \
         swiss syrian taiwanese thai tunisian turkish ukrainian uruguayan venezuelan vietnamese \
         welsh",
    ),
    (
        Class::PronounValues,
        "all almost anything bad because better bit broken close done down either everything fine \
         flexible gone good great her here high him how if important it just large like likely \
         limited lot low maybe me near no not nothing ok okay over perhaps possibly pretty \
         probably quite ready really right same slow small so some someone something soon still \
         that them there these this those tight too unclear unknown up us very what when where \
         whether who why worse wrong you your",
    ),
    (
        Class::ValueEnds,
        "actually again although anymore because but currently if instead lately now nowadays \
         please since so thanks then though tomorrow-ish unless until when whereas which while \
         who",
    ),
    (Class::PlaceEnds, "after and as before during every for from near since to where with"),
    (
        Class::Changes,
        "adjusted brought bumped changed corrected cut decreased delayed doubled dropped extended \
         fell gone grew grown increased jumped lowered moved postponed pushed raised reduced \
         renamed rescheduled revised risen rose set shifted slipped switched updated went",
    ),
    (
        Class::ChangeOrders,
        "bump change cut decrease delay extend increase keep lower move postpone push raise \
         reduce rename reschedule set shift switch update",
    ),
    (
        Class::Trends,
        "climbed declined decreased dropped fell gained grew improved increased jumped lost rose \
         shrank",
    ),
    (
        Class::Measures,
        "averaged averages consumes contains costs handles has have hit hits holds lasts measures \
         peaked peaks processes reached serves shows takes took totals uses",
    ),
    (
        Class::TaskNot,
        "admit agree apologise apologize ask confess disagree emphasize know learn mention say \
         stress thank think understand wonder",
    ),
    (
        Class::Orders,
        "book buy call cancel complete deliver deploy email file finish fix get hand message \
         migrate order pay pick prepare print publish release renew return review schedule send \
         ship sign submit update upgrade write",
    ),
    (
        Class::Deadlines,
        "apr april aug august christmas dec december easter eod eow feb february fri friday jan \
         january jul july jun june mar march midnight mon monday noon nov november oct october \
         sat saturday sep sept september sun sunday thu thursday tomorrow tonight tue tuesday wed \
         wednesday",
    ),
    (
        Class::Standing,
        "add address answer call cite commit deploy end explain format give include keep mention \
         push put recommend reply respond run send show sign speak start suggest use write",
    ),
    (
        Class::Habits,
        "adore attend breed coach collect dislike drive enjoy follow hate like loathe love own \
         play practice practise prefer speak study support teach use visited volunteer",
    ),
    (
        Class::RejectedObjects,
        "all answer approach asking chatting everything hearing her here him his how idea it its \
         plan reading seeing suggestion talking that the-way their them there these this those to \
         what when where working you your",
    ),
    (
        Class::Owned,
        "adhd allergies allergy arthritis asthma bachelor's bicycle bike boat boyfriend brother \
         brothers car celiac child children coeliac daughter daughters degree diabetes dyslexia \
         epilepsy garden girlfriend grandchildren guitar husband insomnia intolerance kid kids \
         licence license master's migraine migraines motorbike motorcycle nephew niece partner \
         passport phd piano roommate roommates sibling siblings sister sisters son sons \
         subscription tattoo tattoos twin twins visa wife",
    ),
    (
        Class::Units,
        "% amps bedrooms bits bps bytes c calories cm cores customers day days degrees employees \
         feet fps ft g gb gbps ghz gib h hour hours hz inch inches items kb kbps kcal kg khz kib \
         kilometer kilometers kilometres kilos km km/h kw kwh l lb lbs lines liter liters litre \
         litres m mb mbps meters metres mg mhz mi mib mile miles min mins minute minutes ml mm \
         month months mph ms nodes ns oz pages pb people percent points pounds qps records reps \
         req/s requests requests/s rooms rows rps s sec second seconds secs steps tb tib tokens \
         tps us users v volts w watts week weeks words year years °c °f µs",
    ),
    (Class::NumberWords, "billion bn hundred k m million thousand trillion"),
    (
        Class::Abouts,
        "about almost an approx approx. approximately around at average currently exactly just \
         nearly now of only over roughly to under up ~",
    ),
    (
        Class::Opinions,
        "amazing answer awesome bad beautiful best big bit cause choice cool example favorite \
         favourite future good good-idea great horrible issue joke key kind lie lot matter mess \
         must nice one only option pain part problem question reason result same shame sort \
         source symbol terrible type waste way worst",
    ),
    (
        Class::Edits,
        "analyse analyze annotate classify convert correct critique edit explain extract \
         following improve paraphrase parse proofread rephrase review rewrite shorten summarise \
         summarize translate",
    ),
    (
        Class::MonthsDays,
        "april august december february friday january july june march may monday november \
         october saturday september sunday thursday tuesday wednesday",
    ),
    (
        Class::ProjectNouns,
        "budget deadline gutenberg lead management manager owner page plan proposal scope status \
         team",
    ),
];

//! Texts and their tokens by Hugging Face's `tokenizers` 0.23.3 and the model's own `tokenizer.json`,
//! special tokens of the text encoded as text. Written by that program, not by ours.

/// A text, and its tokens with blanks between.
pub(super) const TOKENS: &[(&str, &str)] = &[
    ("", ""),
    (" ", ""),
    ("\u{9}\u{a}\u{d} ", ""),
    ("Hello, World!", "hello , world !"),
    ("The cutover is on Tuesday at 09:30.", "the cut ##over is on tuesday at 09 : 30 ."),
    (
        "Café Münchner Straße, naïve façade, Ångström",
        "cafe mu ##nch ##ner st ##raße , naive facade , ang ##strom",
    ),
    ("Cafe\u{301} n\u{303}", "cafe n"),
    ("İstanbul IĞDIR ısı", "istanbul i ##g ##di ##r ı ##s ##ı"),
    ("ΣΊΣΥΦΟΣ ὈΔΥΣΣΕΎΣ", "σ ##ι ##σ ##υ ##φ ##ο ##σ ο ##δ ##υ ##σ ##σ ##ε ##υ ##σ"),
    ("Привет, мир! Ёлка и йод", "п ##р ##и ##в ##е ##т , м ##и ##р ! е ##л ##ка и и ##о ##д"),
    ("東京都に行きました。", "東 京 都 に 行 き ##ま ##し ##た 。"),
    ("今天天气很好", "[UNK] 天 天 [UNK] [UNK] [UNK]"),
    (
        "한국어 텍스트입니다",
        "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ ##ᄋ ##ᅥ ᄐ ##ᅦ ##ᆨ ##ᄉ ##ᅳ ##ᄐ ##ᅳ ##ᄋ ##ᅵ ##ᆸ ##ᄂ ##ᅵ ##ᄃ ##ᅡ",
    ),
    ("カタカナ と ひらがな ﾊﾝｶｸ", "カ ##タ ##カ ##ナ と ひ ##ら ##か ##な [UNK]"),
    (
        "\u{5e9}\u{5b8}\u{5c1}\u{5dc}\u{5d5}\u{5b9}\u{5dd} \u{5e2}\u{5d5}\u{5dc}\u{5dd}",
        "\u{5e9} ##\u{5dc} ##\u{5d5} ##\u{5dd} \u{5e2} ##\u{5d5} ##\u{5dc} ##\u{5dd}",
    ),
    (
        "\u{645}\u{631}\u{62d}\u{628}\u{627} \u{628}\u{627}\u{644}\u{639}\u{627}\u{644}\u{645}",
        "\u{645} ##\u{631} ##\u{62d} ##\u{628} ##\u{627} \u{628} ##\u{627} ##\u{644} ##\u{639} ##\u{627} ##\u{644} ##\u{645}",
    ),
    (
        "ह\u{93f}न\u{94d}द\u{940} म\u{947}\u{902} ल\u{93f}ख\u{93e}",
        "ह ##\u{93f} ##न ##द ##\u{940} म ल ##\u{93f} ##ख ##\u{93e}",
    ),
    ("ภาษาไทย", "[UNK]"),
    ("tiếng Việt đẹp", "tie ##ng viet đ ##ep"),
    ("👍 great 🎉🎉 job 👩\u{200d}👩\u{200d}👧", "[UNK] great [UNK] job [UNK]"),
    ("I❤\u{fe0f}NY", "[UNK]"),
    ("don't won't it's o'clock ’tis ‘quoted’", "don ' t won ' t it ' s o ' clock ’ tis ‘ quoted ’"),
    ("“curly” — em–dash… ellipsis", "“ curly ” — em – dash … el ##lip ##sis"),
    ("rock'n'roll", "rock ' n ' roll"),
    ("https://example.com/a/b?c=d&e=f#g", "https : / / example . com / a / b ? c = d & e = f # g"),
    ("me@example.org, www.example.co.uk", "me @ example . org , www . example . co . uk"),
    ("C:\\path\\file.txt", "c : \\ path \\ file . tx ##t"),
    ("snake_case camelCase kebab-case", "snake _ case camel ##case ke ##ba ##b - case"),
    (
        "3.14159 1,000,000 1e-9 0xDEADBEEF 2026-11-20T15:04:05Z",
        "3 . 141 ##59 1 , 000 , 000 1 ##e - 9 0 ##x ##de ##ad ##bee ##f 202 ##6 - 11 - 20 ##t ##15 : 04 : 05 ##z",
    ),
    ("\u{663}\u{664}\u{665} ½ ² Ⅷ ①", "[UNK] ½ ² [UNK] [UNK]"),
    (
        "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
        "anti ##dis ##est ##ab ##lish ##ment ##arian ##ism p ##ne ##um ##ono ##ult ##ram ##ic ##ros ##copic ##sil ##ico ##vo ##lc ##ano ##con ##ios ##is",
    ),
    (
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "aaa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##aa ##a",
    ),
    (
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "[UNK]",
    ),
    (
        "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb c",
        "bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##bb ##b c",
    ),
    (
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx short",
        "[UNK] short",
    ),
    (
        "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé",
        "ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee ##ee",
    ),
    (
        "ééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé",
        "[UNK]",
    ),
    (
        "[CLS] [SEP] [UNK] [PAD] [MASK] [unused5]",
        "[ cl ##s ] [ sep ] [ un ##k ] [ pad ] [ mask ] [ unused ##5 ]",
    ),
    ("##ing ##s # ## a##b", "# # ing # # s # # # a # # b"),
    ("$100 £5 €3 ¥7 + = < > ^ ` | ~", "$ 100 £5 € ##3 ¥ ##7 + = < > ^ ` | ~"),
    ("a\u{0}b�c\u{200b}d\u{ad}e\u{feff}f", "abc ##de ##f"),
    (
        "one\u{a0}two\u{2003}three\u{3000}four\u{2028}five\u{85}six\u{b}seven",
        "one two three four five ##si ##x ##se ##ven",
    ),
    ("\u{301}\u{301} a\u{301}\u{323}b", "ab"),
    ("ﬁne ﬂow ＡＢＣ １２３", "ﬁ ##ne ﬂ ##ow [UNK] [UNK]"),
    ("𝒜𝓁𝑔𝑒𝒷𝓇𝒶 𠀀𠀁 𪜀", "[UNK] [UNK] [UNK] [UNK]"),
    ("zzqxjv qqqq ☃ ꙮ", "z ##z ##q ##x ##j ##v q ##q ##q ##q [UNK] [UNK]"),
    ("Ǆ ǅ ǆ ß ẞ ŉ", "[UNK] [UNK] [UNK] ß ß [UNK]"),
    ("A\u{9}B\u{a}C\u{d}D", "a b c d"),
    ("; ` Å Ω", "; ` a ω"),
    (
        "e-mail; re-enter: co-op/(maybe) [yes] {no}",
        "e - mail ; re - enter : co - op / ( maybe ) [ yes ] { no }",
    ),
    ("힣각 각", "[UNK] ᄀ ##ᅡ ##ᆨ"),
    ("a\u{20dd} b\u{488} c\u{903}", "[UNK] [UNK] [UNK]"),
    ("1\u{fe0f}\u{20e3} 🏳\u{fe0f}\u{200d}🌈", "[UNK] [UNK]"),
    ("\u{202e}RTL\u{202c} \u{2066}x\u{2069}", "rt ##l x"),
    ("日本語abc日本123", "日 本 語 abc 日 本 123"),
    ("TL;DR: it's 5pm—let's go!!!", "t ##l ; dr : it ' s 5 ##pm — let ' s go ! ! !"),
    (
        "wordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordwordword",
        "[UNK]",
    ),
];

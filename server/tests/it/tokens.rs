//! Budgets are counted with the real o200k tokenizer: its counts agree with another implementation,
//! and no context of random content exceeds its budget by them.

use proptest::prelude::*;
use serde_json::Value;
use throughline_core::ErrorKind;
use throughline_core::context::{Gathered, Turn, assemble};
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::session::{Cuts, Message, Role};
use throughline_core::time::Timestamp;
use throughline_core::tokens::Tokenizer;
use throughline_core::turn::{Fading, Intent, RecallOptions, Tier};
use throughline_engine::adapters::O200k;
use throughline_engine::import::read_bytes;

#[test]
fn counts_agree_with_another_implementation() {
    let golden: Value = serde_json::from_str(include_str!("../golden/o200k.json")).unwrap();
    let tokenizer = O200k;
    for entry in golden["texts"].as_array().unwrap() {
        let text = entry[0].as_str().unwrap();
        assert_eq!(u64::from(tokenizer.count(text)), entry[1].as_u64().unwrap(), "{text:?}");
    }
    let sample = include_bytes!("../../assets/demo-conversation.json");
    let file = read_bytes(sample, "sample").unwrap();
    let messages = file.sessions.iter().flat_map(|session| &session.messages);
    let counts: Vec<u64> =
        messages.map(|message| u64::from(tokenizer.count(&message.content))).collect();
    let expected: Vec<u64> =
        golden["sample"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
    assert_eq!(counts, expected);
}

fn message(at: usize, content: String, tokenizer: &O200k) -> Message {
    Message {
        cuts: Cuts::default(),
        id: MessageId::from_uuid(uuid::Uuid::from_u128(at as u128 + 1)),
        session: SessionId::new("s").unwrap(),
        session_number: 1,
        seq: at as u64 + 1,
        position: u32::try_from(at).unwrap(),
        units: 1,
        role: Role::ALL[at % 4],
        name: None,
        tokens: tokenizer.count(&content),
        content,
        external_id: None,
        created_at: Timestamp::from_micros(0),
        parts: None,
        attachments: None,
        actor: throughline_core::access::Actor::User,
        original: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_context_exceeds_its_budget(
        contents in proptest::collection::vec("\\PC{1,400}", 0..40),
        turn in "\\PC{1,200}",
        budget in 1_u32..4_000,
        tier in 0_usize..3,
    ) {
        let tokenizer = O200k;
        let recent: Vec<Message> = contents
            .into_iter()
            .enumerate()
            .map(|(at, content)| message(at, content, &tokenizer))
            .collect();
        let gathered =
            Gathered { session_messages: recent.len() as u64, recent, ..Gathered::default() };
        let turn = Turn {
            text: &turn,
            intent: Intent::DeepAnalysis,
            tier: Tier::ALL[tier],
            budget,
            fading: Fading::ALL[tier % 2],
            options: RecallOptions::default(),
        };
        let context = assemble(&turn, &gathered, &tokenizer);
        if let Err(error) = &context {
            prop_assert_eq!(error.kind(), ErrorKind::BudgetTooSmall);
        }
        if let Ok(context) = context {
            let counted: u32 =
                context.payload().map(|message| tokenizer.count(&message.content) + 4).sum();
            prop_assert_eq!(context.budget.used, counted + 3);
            prop_assert!(context.budget.used <= budget);
        }
    }
}

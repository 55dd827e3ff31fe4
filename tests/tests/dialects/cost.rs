//! What an assembly and the check of what it returns cost, printed.

use std::time::Instant;

use lcm_core::api::Dialect;

use crate::{Chat, DIALECTS, generate};

#[test]
fn table_of_costs() {
    for dialect in DIALECTS {
        let mut chat = Chat::new("{}");
        let mut generator = generate::Generator::new(7, true);
        let mut batch = Vec::new();
        for _ in 0..4_000 {
            for event in generator.next() {
                batch.extend(generate::write(dialect, &event, &mut generator.random));
            }
        }
        for chunk in batch.chunks(100) {
            chat.append(dialect, chunk);
        }
        let (mut warm, mut check, mut bytes) = (u128::MAX, u128::MAX, 0);
        for n in 0..12 {
            let own = if dialect == Dialect::Lcm { Dialect::Lcm } else { Dialect::OpenaiChat };
            chat.append(own, &[format!("{{\"role\":\"user\",\"content\":\"more {n}\"}}")]);
            let start = Instant::now();
            let assembled = chat.assemble(dialect, 128_000, None);
            warm = warm.min(start.elapsed().as_micros());
            bytes = assembled.messages_json.len();
            if dialect != Dialect::Lcm {
                let start = Instant::now();
                assert_eq!(chat.findings(dialect, &assembled.messages_json), "[]");
                check = check.min(start.elapsed().as_micros());
            }
        }
        println!("{dialect:?}: {bytes} bytes, assembly {warm} us, check {check} us");
    }
}

import Access
import Learning
import Message
import Rules

extension ActiveJob {
    func writeMembers(to json: inout JSONWriter) {
        json.member("job", job)
        json.member("scope", scope.text)
        json.member("allows", allows)
        json.key("ends")
        if let endsAt {
            json.string(rfc3339(secondsSinceEpoch: endsAt.wallTime.secondsSinceEpoch))
        } else {
            json.null()
        }
    }
}

extension Journal {
    /// The members of one element of `jobs` in `GET /learn`.
    ///
    /// - Parameter active: nil if the job does not learn now.
    func writeSummary(to json: inout JSONWriter, _ active: ActiveJob?) {
        json.member("job", job)
        json.member("scope", scope.text)
        json.member("learning", active != nil)
        if let active {
            json.member("allows", active.allows)
            json.key("ends")
            if let end = active.endsAt {
                json.string(rfc3339(secondsSinceEpoch: end.wallTime.secondsSinceEpoch))
            } else {
                json.null()
            }
        }
        json.member("runs", runs.count)
        json.member("requests", requests)
        json.member("left_out", leftOut)
        json.key("last_run")
        guard let run = runs.last else { return json.null() }
        json.object {
            $0.member("started", rfc3339(secondsSinceEpoch: run.startedAt.secondsSinceEpoch))
            $0.key("ended")
            if let end = run.endedAt { $0.string(rfc3339(secondsSinceEpoch: end.secondsSinceEpoch)) } else { $0.null() }
            $0.member("requests", run.requests)
        }
    }

    /// The body of `GET /learn/show`.
    func json(_ difference: Difference, _ active: ActiveJob?) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { json in
            writeSummary(to: &json, active)
            json.member("yaml", yaml)
            json.key("rules")
            json.array { for rule in neededRules { rule.write(to: &$0) } }
            json.key("denied")
            json.array { for rule in deniedRules { rule.write(to: &$0) } }
            json.key("difference")
            json.object { json in
                json.key("missing")
                json.array { for rule in difference.missing { rule.write(to: &$0) } }
                json.key("superfluous")
                json.array { for number in difference.superfluous { $0.integer(number) } }
                json.key("denied")
                json.array { for rule in difference.denied { rule.write(to: &$0) } }
            }
        }
        return writer.bytes
    }
}

extension LearntRule {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { json in
            json.key("match")
            json.object { json in
                for part in conditions.parts {
                    json.key(part.name)
                    json.array { for value in part.values { $0.string(value) } }
                }
            }
            if let intercept { json.member("intercept", intercept) }
            json.member("text", "\(conditions)" + (intercept == true ? " → intercept yes" : ""))
            json.member("comment", comment)
            json.member("runs", evidence.runs)
            json.member("runs_in_all", evidence.runsMax)
            json.member("requests", evidence.requests)
            json.member("let_through", evidence.permitted)
            json.member("request_bytes_max", evidence.requestBytesMax)
            json.member("response_bytes_max", evidence.responseBytesMax)
            json.key("credentials")
            json.array { for name in evidence.credentials { $0.string(name) } }
            json.key("recipes")
            json.array { for name in evidence.recipes { $0.string(name) } }
            if let reason = evidence.reason { json.member("denial", reason.rawValue) }
            if let rule = evidence.rule { json.member("rule", rule) }
        }
    }
}

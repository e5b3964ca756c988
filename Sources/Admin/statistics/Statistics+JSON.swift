extension Statistics {
    /// The body of `GET /stats`.
    package func json() -> [UInt8] {
        var writer = JSONWriter()
        writer.object { json in
            for section in StatisticsSection.allCases {
                guard section != .process else {
                    json.members(section.figures, of: self)
                    continue
                }
                json.key(section.rawValue)
                json.object { $0.members(section.figures, of: self, omittingZeros: section.isTally) }
            }
            json.key("zones")
            json.array { for zone in zones { zone.write(to: &$0) } }
            json.key("workers")
            json.array { for worker in workers { worker.write(to: &$0) } }
            json.key("ecosystems")
            json.array { for ecosystem in ecosystems { ecosystem.write(to: &$0) } }
            json.key("certificate_refusals")
            json.array { for refusal in certificateRefusals { refusal.write(to: &$0) } }
            json.key("certificate_requests")
            json.array { for request in certificateRequests { request.write(to: &$0) } }
            json.key("credentials")
            json.array { for credential in credentials { credential.write(to: &$0) } }
            json.key("cookie_jars")
            json.array { for jar in cookieJars { jar.write(to: &$0) } }
            json.key("next_proxies")
            json.array { for proxy in nextProxies { proxy.write(to: &$0) } }
            json.key("pac_files")
            json.array { for file in pacFiles { file.write(to: &$0) } }
            json.key("unverified_origins")
            json.array { for origin in unverifiedOrigins { origin.write(to: &$0) } }
            json.key("learning")
            json.array { for job in learning { job.write(to: &$0) } }
            json.key("bandwidth_limits")
            json.array { for limit in bandwidthLimits { limit.write(to: &$0) } }
            json.key("limit_rules")
            json.array { for rule in limitRules { rule.write(to: &$0) } }
            json.key("limits")
            json.array { for bucket in limitBuckets { bucket.write(to: &$0) } }
            json.key("fleet_nodes")
            fleet.writeNodes(to: &json)
            json.key("fleet_owners")
            owners.writeMembers(to: &json)
            json.key("origins_down")
            json.array { for origin in originsDown { origin.write(to: &$0) } }
            json.key("names_unanswered")
            json.array { for name in namesUnanswered { name.write(to: &$0) } }
        }
        return writer.bytes
    }
}

extension Statistics.UnverifiedOrigin {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("host", host)
            $0.member("rule", UInt64(rule))
            $0.member("pinned", isPinned)
        }
    }
}

extension Statistics.LearningJob {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("job", job)
            $0.member("scope", scope)
            $0.member("allows", allows)
            if let endsAt { $0.member("ends", rfc3339(secondsSinceEpoch: endsAt)) }
        }
    }
}

extension Statistics.BandwidthLimit {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("limit", limit)
            $0.member("rate", rate)
            $0.member("average", average)
            $0.member("flows", UInt64(flows))
        }
    }
}

extension Statistics.LimitRuleFigures {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", name)
            $0.members(limitRuleFigures, of: use)
        }
    }
}

extension Statistics.LimitBucketUsage {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("rule", rule)
            $0.member("subject", subject)
            $0.member("under_way", UInt64(max(0, underWay)))
            $0.member("connections", UInt64(max(0, connections)))
            $0.member("refused", refused)
            $0.member("bytes", bytes)
            $0.member("spent", spent)
        }
    }
}

extension Statistics.NameUnanswered {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", name)
            $0.member("servers", servers)
            $0.member("since", rfc3339(secondsSinceEpoch: since))
            $0.member("retry_after", UInt64(retryAfter))
        }
    }
}

extension Statistics.OriginDown {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("origin", origin)
            $0.member("since", rfc3339(secondsSinceEpoch: since))
            $0.member("retry_after", UInt64(retryAfter))
        }
    }
}

extension Statistics.Zone {
    fileprivate func write(to json: inout JSONWriter) {
        json.object { json in
            json.member("name", name)
            json.members(memoryFigures, of: memory)
            guard let disk else { return }
            json.key("disk")
            json.object { $0.members(diskFigures, of: disk) }
        }
    }
}

extension Statistics.Ecosystem {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", name)
            $0.members(ecosystemFigures, of: counts)
        }
    }
}

extension Statistics.CertificateRefusal {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            if let client { $0.member("client", client) }
            $0.member("host", host)
            $0.member("signal", signal)
            $0.member("count", count)
            $0.member("last_at", rfc3339(secondsSinceEpoch: lastAt))
        }
    }
}

extension Statistics.CertificateRequest {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("host", host)
            $0.member("required", isRequired)
            $0.member("count", count)
            $0.member("last_at", rfc3339(secondsSinceEpoch: lastAt))
        }
    }
}

extension Statistics.Credential {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", name)
            $0.key("schemes")
            $0.array { for scheme in schemes { $0.string(scheme) } }
            $0.key("refusals")
            $0.array { json in
                for refusal in refusals {
                    json.object {
                        $0.member("origin", refusal.origin)
                        $0.member("count", refusal.count)
                        $0.member("since", rfc3339(secondsSinceEpoch: refusal.since))
                        $0.member("given_up", refusal.isGivenUp)
                    }
                }
            }
        }
    }
}

extension Statistics.CookieJar {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("name", name)
            $0.member("cookies", cookies)
            $0.member("sent", sent)
            $0.member("set", set)
            $0.key("rejected")
            $0.object { for rejection in rejected { $0.member(rejection.reason, rejection.count) } }
        }
    }
}

extension Statistics.NextProxy {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("url", url)
            $0.member("works", failure == nil)
            if let failure { $0.member("failure", failure) }
            if let failingSince { $0.member("failing_since", rfc3339(secondsSinceEpoch: failingSince)) }
        }
    }
}

extension Statistics.PACFile {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("path", path)
            $0.members(pacFileFigures, of: self)
            if let process { $0.member("process", UInt64(clamping: process)) }
            if let failure { $0.member("failure", failure) }
            if let fetchedAt { $0.member("fetched_at", rfc3339(secondsSinceEpoch: fetchedAt)) }
            if let fetchFailure { $0.member("fetch_failure", fetchFailure) }
            if let fetchFailingSince {
                $0.member("fetch_failing_since", rfc3339(secondsSinceEpoch: fetchFailingSince))
            }
        }
    }
}

extension Statistics.Worker {
    fileprivate func write(to json: inout JSONWriter) {
        json.object {
            $0.member("number", number)
            $0.members(workerFigures, of: counts)
        }
    }
}

extension JSONWriter {
    fileprivate mutating func members<Subject>(
        _ figures: [Figure<Subject>], of subject: Subject, omittingZeros: Bool = false
    ) {
        for figure in figures {
            let value = figure.value(subject)
            if omittingZeros && value.isZero { continue }
            switch value {
            case .count(let count): member(figure.name, count)
            case .ratio(let ratio): member(figure.name, ratio)
            case .flag(let flag): member(figure.name, flag)
            case .isOn(let isOn): member(figure.name, isOn ? "on" : "off")
            case .text(let text): if let text { member(figure.name, text) }
            case .time(let seconds): member(figure.name, rfc3339(secondsSinceEpoch: seconds))
            }
        }
    }
}

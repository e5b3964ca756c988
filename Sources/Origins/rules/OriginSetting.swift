import Rules

/// A setting of a rule of `origins`, by its key, and what it means for what is stored.
///
/// A stored response is for everybody whose request has its key. So a setting that decides what an origin sends, or whether it is believed, must
/// be in the key, or must be the same for all clients. A new setting is a case here: the compiler asks for its influence, and a test for its case.
package enum OriginSetting: String, CaseIterable, Sendable {
    case timeouts, connections, retries, bandwidth, tls, fields, cookies, redirects
    case requestCoding = "request_coding"

    package enum Influence: Sendable, Equatable {
        /// It changes how and when an origin is asked, and not what it answers.
        case none
        /// What was fetched with it has a key of its own.
        case inKey
        /// It decides what is stored for everybody: no rule may have it for some clients alone.
        case onAll
    }

    package var influence: Influence {
        switch self {
        // Which connection a request takes, and how long it waits. Of the interfaces and addresses of `connections` an origin sees where this
        // machine is, as it does of any client's.
        case .timeouts, .connections, .retries, .bandwidth: .none
        // The content of requests, whose answers are not stored.
        case .requestCoding: .none
        // The redirect itself is stored. Whether it is followed is decided for each request.
        case .redirects: .none
        // The name of the jar is part of the key.
        case .cookies: .inKey
        // What requests say to the origin.
        case .fields: .onAll
        // Whom Larder believes to be the origin, and as whom it asks.
        case .tls: .onAll
        }
    }
}

extension OriginRule {
    /// Whether the rule says something about it.
    package func says(_ setting: OriginSetting) -> Bool {
        switch setting {
        case .timeouts: timeouts != Timeouts()
        case .connections: connections != Connections()
        case .retries: retriesMax != nil
        case .bandwidth: bandwidth != nil
        case .tls: tls != nil
        case .fields: !fields.isEmpty
        case .cookies: cookies != nil
        case .redirects: redirectsMax != nil
        case .requestCoding: encodesRequests
        }
    }

    /// The settings of the rule that decide what is stored for everybody.
    package var settingsOnAll: [OriginSetting] { OriginSetting.allCases.filter { $0.influence == .onAll && says($0) } }

    /// Whether some request may match both rules. True where that is not known for certain.
    package func mayShareRequests(with other: OriginRule) -> Bool {
        let (hosts, others) = (conditions.hosts, other.conditions.hosts)
        guard !hosts.isEmpty, !others.isEmpty else { return true }
        return hosts.contains { one in others.contains { one.covers($0) || $0.covers(one) } }
    }
}

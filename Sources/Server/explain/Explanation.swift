package import Message

/// A request to explain.
package struct ExplainQuestion: Sendable, Equatable {
    package var method = "GET"
    /// An absolute URL, or `host:port` for CONNECT.
    package var target: String
    /// Field lines, `Name: value`.
    package var fields: [String] = []
    /// The user that is assumed to be authenticated; nil for none.
    package var user: String?
    /// The address of the client. Nil stands for 127.0.0.1.
    package var client: IPAddress?

    package init(target: String) { self.target = target }
}

/// What Larder would do with a request, and why: the steps in order, each with its lines.
package struct Explanation: Sendable, Equatable {
    package struct Section: Sendable, Equatable {
        package var name: String
        package var lines: [Line] = []
        package init(_ name: String) { self.name = name }
    }
    package struct Line: Sendable, Equatable {
        package var name: String
        package var value: String
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package enum Decision: String, Sendable, CaseIterable {
        /// Answered from the store.
        case hit
        /// Answered from the store although stale, while the origin is asked without the client.
        case stale
        /// The origin is asked with the validators of stored responses.
        case validate
        /// The origin is asked.
        case fetch
        /// The origin has been asked by another request, whose response this one awaits.
        case collapse
        case tunnel
        /// Larder itself answers: OPTIONS and TRACE with `Max-Forwards: 0`.
        case local
        case refuse
    }

    package var sections: [Section] = []
    package var decision: Decision
    /// One sentence for the person who asked.
    package var reason: String

    package init(_ decision: Decision, reason: String) {
        self.decision = decision
        self.reason = reason
    }
}

/// The question is not a request that the proxy would accept. `message` says why.
package struct ExplainError: Error, Equatable {
    package var message: String
    package init(message: String) { self.message = message }
}

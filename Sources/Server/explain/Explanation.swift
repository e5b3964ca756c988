package import Message

/// A request that is only asked about.
package struct ExplainQuestion: Sendable, Equatable {
    package var method = "GET"
    /// An absolute URL; `host:port` for CONNECT.
    package var target: String
    /// Field lines, `Name: value`.
    package var fields: [String] = []
    /// Taken for authenticated; nil: nobody.
    package var user: String?
    /// Nil: a client of this machine, 127.0.0.1.
    package var client: IPAddress?

    package init(target: String) { self.target = target }
}

/// What would become of a request, and why: the steps in their order, each with its lines.
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
        /// Answered from the store though stale, and asked for behind the client's back.
        case stale
        /// The origin is asked with the validators of what is stored.
        case validate
        /// The origin is asked.
        case fetch
        /// The origin is asked already; this request joins.
        case collapse
        case tunnel
        /// Larder answers itself: OPTIONS and TRACE with `Max-Forwards: 0`.
        case local
        case refuse
    }

    package var sections: [Section] = []
    package var decision: Decision
    /// One sentence for people.
    package var reason: String

    package init(_ decision: Decision, reason: String) {
        self.decision = decision
        self.reason = reason
    }
}

/// The question is no request that the proxy would read; the text says what is wrong with it.
package struct ExplainError: Error, Equatable {
    package var message: String
    package init(message: String) { self.message = message }
}

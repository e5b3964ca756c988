/// One error or warning about a configuration: `larder.yaml:12: cache.memroy: unknown key; did you mean cache.memory?`
package struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    package let file: String
    /// From 1. Zero if the error is about the file as a whole.
    package let line: Int
    /// The path of the key, `access.rules[2].allow.port`. Empty if the error is about no key.
    package let key: String
    package let message: String
    /// What to do about it. Nil if the message is sufficient.
    package let hint: String?

    /// Whether the error is that `intercept` needs an authority and names none. `larder ca create` makes one.
    package var isMissingAuthority: Bool { hint == ConfigurationError.authorityHint }

    static let authorityHint = "larder ca create makes an authority, and prints both lines"

    package init(file: String, line: Int, key: String, message: String, hint: String? = nil) {
        self.file = file
        self.line = line
        self.key = key
        self.message = message
        self.hint = hint
    }

    package var description: String {
        var text = line > 0 ? "\(file):\(line): " : "\(file): "
        if !key.isEmpty { text += "\(key): " }
        text += message
        if let hint { text += "; \(hint)" }
        return text
    }
}

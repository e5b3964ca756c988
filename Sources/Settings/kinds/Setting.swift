/// The declaration of one setting: its key, its meaning, the values it takes, its property of `Configuration`, and when a change
/// takes effect.
///
/// Its default is the value in `Configuration()`.
struct Setting<Value: Sendable & Equatable>: SettingDeclaration {
    let key: String
    let meaning: String
    let reload: Reload
    let written: [String]
    let example: [String]
    let defaultMeaning: String?
    private let inEffect: (@Sendable (Configuration) -> String)?
    private let kind: SettingKind<Value>
    private let place: any WritableKeyPath<Configuration, Value> & Sendable

    /// - Parameters:
    ///   - written: the default as the sample file shows it, for values that nobody would write on one line.
    ///   - example: what the sample file shows as a comment, for settings whose default cannot be written.
    ///   - defaultMeaning: what the default means, if its value does not say so.
    ///   - inEffect: the value that applies if the setting is left out.
    init(
        _ key: String, _ place: any WritableKeyPath<Configuration, Value> & Sendable, _ kind: SettingKind<Value>,
        reload: Reload, _ meaning: String, written: [String] = [], example: [String] = [],
        defaultMeaning: String? = nil,
        inEffect: (@Sendable (Configuration) -> String)? = nil
    ) {
        self.key = key
        self.place = place
        self.kind = kind
        self.reload = reload
        self.meaning = meaning
        self.written = written
        self.example = example
        self.defaultMeaning = defaultMeaning
        self.inEffect = inEffect
    }

    var allowed: String { kind.allowed }

    func text(in configuration: Configuration) -> String { kind.render(configuration[keyPath: place]) }

    func effectiveText(in configuration: Configuration) -> String {
        let written = text(in: configuration)
        return written.isEmpty ? inEffect?(configuration) ?? "(\(defaultMeaning ?? "none"))" : written
    }

    func differs(_ a: Configuration, _ b: Configuration) -> Bool { a[keyPath: place] != b[keyPath: place] }

    func read(_ node: ConfigurationNode, into configuration: inout Configuration) -> [SettingProblem] {
        var problems: [SettingProblem] = []
        if let value = kind.read(node, &problems) { configuration[keyPath: place] = value }
        return problems
    }
}

/// What all settings have in common, whatever the type of their value.
protocol SettingDeclaration: Sendable {
    /// `cache.memory`
    var key: String { get }
    var meaning: String { get }
    var allowed: String { get }
    var reload: Reload { get }
    var written: [String] { get }
    var example: [String] { get }
    var defaultMeaning: String? { get }
    /// The value as YAML on one line. Empty if the configuration leaves it out.
    func text(in configuration: Configuration) -> String
    /// The same, but with the value that applies if the setting is left out.
    func effectiveText(in configuration: Configuration) -> String
    func differs(_ a: Configuration, _ b: Configuration) -> Bool
    /// Stores the value in the configuration, or reports what is wrong with it.
    func read(_ node: ConfigurationNode, into configuration: inout Configuration) -> [SettingProblem]
}

/// When a change to a setting takes effect.
enum Reload: String, CaseIterable, Sendable {
    /// At SIGHUP, for requests that start afterwards.
    case live
    /// At the next start.
    case restart
}

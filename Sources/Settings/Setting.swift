/// One setting, declared once: key path in the file, meaning, what is allowed, where it goes, how it is reloaded.
///
/// Its default is what `Configuration()` holds.
struct Setting<Value: Sendable & Equatable>: SettingDeclaration {
    let key: String
    let meaning: String
    let reload: Reload
    let written: [String]
    let example: [String]
    let defaultMeaning: String?
    private let kind: SettingKind<Value>
    private let place: any WritableKeyPath<Configuration, Value> & Sendable

    /// - Parameters:
    ///   - written: the default for the sample file where one line of `key: value` would not be how people write it.
    ///   - example: lines for the sample file where it can not hold the default itself; it shows them as a comment.
    ///   - defaultMeaning: what the default means, where its value does not say it.
    init(
        _ key: String, _ place: any WritableKeyPath<Configuration, Value> & Sendable, _ kind: SettingKind<Value>,
        reload: Reload, _ meaning: String, written: [String] = [], example: [String] = [], defaultMeaning: String? = nil
    ) {
        self.key = key
        self.place = place
        self.kind = kind
        self.reload = reload
        self.meaning = meaning
        self.written = written
        self.example = example
        self.defaultMeaning = defaultMeaning
    }

    var allowed: String { kind.allowed }

    func text(in configuration: Configuration) -> String { kind.render(configuration[keyPath: place]) }

    func differs(_ a: Configuration, _ b: Configuration) -> Bool { a[keyPath: place] != b[keyPath: place] }

    func read(_ node: ConfigurationNode, into configuration: inout Configuration) -> [SettingProblem] {
        var problems: [SettingProblem] = []
        if let value = kind.read(node, &problems) { configuration[keyPath: place] = value }
        return problems
    }
}

/// What all settings have in common, whatever their value.
protocol SettingDeclaration: Sendable {
    /// `cache.memory`
    var key: String { get }
    var meaning: String { get }
    var allowed: String { get }
    var reload: Reload { get }
    var written: [String] { get }
    var example: [String] { get }
    var defaultMeaning: String? { get }
    /// The value as YAML on one line; empty where it is left out.
    func text(in configuration: Configuration) -> String
    func differs(_ a: Configuration, _ b: Configuration) -> Bool
    /// Puts the value in its place, or tells what is wrong with it.
    func read(_ node: ConfigurationNode, into configuration: inout Configuration) -> [SettingProblem]
}

/// When a changed value takes effect.
enum Reload: String, CaseIterable, Sendable {
    /// With SIGHUP, for requests that begin then.
    case live
    /// With the next start.
    case restart
}

import Access
import Learning
import Message
import Rules
import Settings
import Testing
import YAML

/// A request for `http://host:port/path`, or CONNECT.
func request(
    _ host: String, _ path: String = "/", port: UInt16 = 80, method: Method = .get, text: String? = nil,
    client: String? = "10.2.0.17", user: String? = nil
) throws -> AccessRequest {
    AccessRequest(
        client: client.flatMap { IPAddress(strict: Array($0.utf8)) },
        identity: user.map { Identity(name: $0, scheme: .basic) }, method: method, methodText: text,
        destination: try #require(DestinationHost(host.utf8)), port: port, isTunnel: method == .connect,
        pathAndQuery: ArraySlice(path.utf8))
}

extension Journal {
    /// The journal of a job with one run.
    init(_ observations: [Observation], scope: JobScope = JobScope(), recipes: RecipePaths = RecipePaths()) {
        self.init(job: "nightly", scope: scope)
        run(observations, recipes: recipes)
    }

    mutating func run(_ observations: [Observation], recipes: RecipePaths = RecipePaths()) {
        begin(scope, allowing: false, at: WallTime(secondsSinceEpoch: 1_700_000_000))
        for observation in observations { note(observation, recipes: recipes) }
        end(at: WallTime(secondsSinceEpoch: 1_700_000_060))
    }

    /// `host:port METHOD path` for each path of each rule.
    var summary: [String] {
        neededRules.flatMap { rule -> [String] in
            let place = "\(rule.conditions.hosts[0]):\(rule.conditions.ports[0].lowerBound)"
            let methods = rule.conditions.methods.joined(separator: ",")
            let paths = rule.conditions.paths.map { " \($0)" }
            return (paths.isEmpty ? [""] : paths).map { "\(place) \(methods)\($0)" }
        }
    }
}

/// The rules of a text as the configuration reads them.
func accessRules(_ yaml: String) throws -> AccessSettings {
    let root = try parseYAML(Array(yaml.utf8)).map { ConfigurationNode($0) }
    let loaded = loadConfiguration(root, file: "learnt.yaml")
    #expect(loaded.errors == [])
    return try #require(loaded.configuration).access
}

extension ConfigurationNode {
    init(_ node: YAMLNode) {
        let value: Value
        switch node.value {
        case .scalar(let text, let isQuoted): value = .scalar(text, isQuoted: isQuoted)
        case .sequence(let elements): value = .list(elements.map { ConfigurationNode($0) })
        case .mapping(let entries):
            value = .mapping(
                entries.map { Entry(key: $0.key, keyLine: $0.keyLine, value: ConfigurationNode($0.value)) })
        }
        self.init(value, line: node.line, column: node.column)
    }
}

/// The paths of a recipe for all hosts below example.org.
func recipe(_ name: String, _ patterns: [String], methods: [String] = []) -> RecipePaths.Rule {
    var conditions = RuleConditions()
    conditions.hosts = [HostPattern("*.example.org")].compactMap(\.self)
    conditions.paths = patterns.compactMap { PathPattern($0) }
    conditions.methods = methods
    return RecipePaths.Rule(recipe: name, conditions: conditions)
}

/// SplitMix64, so that a seed names a test.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

import Message
package import Rules

/// A path as a learnt rule has it.
package enum PathShape: Sendable, Hashable, Comparable {
    /// One path, spelled as a pattern.
    case exact(String)
    /// What a recipe says of the path, with the directories of the path.
    case recipe(String, pattern: String)
    /// Everything in a directory, with its slash at the end: too many different paths.
    case below(String)

    /// The value of `path` in a rule.
    package var pattern: String {
        switch self {
        case .exact(let text): text
        case .recipe(_, let text): text
        case .below(let directory): directory + "*"
        }
    }

    /// The directories that do not depend on the request: `/a/` and `/a/b/` for `/a/b/{file}.whl`, the shortest first. The root is not among
    /// them: a rule for all paths of a host is for people to write.
    var directories: [String] {
        let text = pattern
        let fixed = text.utf8.prefix { $0 != UInt8(ascii: "*") }
        var result: [String] = []
        for index in fixed.indices where fixed[index] == UInt8(ascii: "/") && index > fixed.startIndex {
            let directory = String(text[...index])
            // A placeholder for one byte stands for a byte that cannot be spelled; others leave something open.
            if directory.replacing("{byte:1}", with: "").contains("{") { break }
            result.append(directory)
        }
        return result
    }

    /// The directory of an exact path. Nil for the root, and for other shapes.
    var parent: String? {
        guard case .exact = self else { return nil }
        return directories.last
    }

    package static func < (a: PathShape, b: PathShape) -> Bool { (a.pattern, a.order) < (b.pattern, b.order) }

    private var order: Int {
        switch self {
        case .exact: 0
        case .recipe: 1
        case .below: 2
        }
    }
}

/// The recipes in force, as far as paths are concerned.
package struct RecipePaths: Sendable, Equatable {
    /// One rule of a recipe, with the hosts for which it holds.
    package struct Rule: Sendable, Equatable {
        package var recipe: String
        package var conditions: RuleConditions

        package init(recipe: String, conditions: RuleConditions) {
            self.recipe = recipe
            self.conditions = conditions
        }
    }

    private let rules: [Rule]

    package init(_ rules: [Rule] = []) { self.rules = rules.filter { !$0.conditions.paths.isEmpty } }

    /// The shape of the path of a request. Nil if no rule could allow this path alone: it has segments `.` or `..`, which origins resolve.
    func shape(of request: RuleRequest) -> PathShape? {
        guard let path = request.path else { return nil }
        if let rule = rules.first(where: { $0.conditions.holdForRequest(request, paths: .asSent) }),
            let narrow = rule.conditions.paths.first(where: { $0.matches(path) })?.narrowed(to: path),
            narrow.isEnough(for: request)
        {
            return .recipe(rule.recipe, pattern: "\(narrow)")
        }
        let text = PathPattern.spelling(of: path)
        return PathPattern(text)?.isEnough(for: request) == true ? .exact(text) : nil
    }
}

extension PathPattern {
    /// Whether a rule with this path allows the request.
    fileprivate func isEnough(for request: RuleRequest) -> Bool {
        var conditions = RuleConditions()
        conditions.paths = [self]
        return conditions.holdForRequest(request, paths: .everySpelling)
    }
}

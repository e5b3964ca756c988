package import Settings
import YAML

/// The recipes that are built into the program, from the files in `data`.
package enum RecipeBook {
    /// In the order of their names.
    package static let all: [Recipe] = files.map { name, bytes in
        let loaded = read(bytes, name: name)
        guard let recipe = loaded.recipe else { preconditionFailure("the recipe \(name) is wrong: \(loaded.errors)") }
        return recipe
    }

    package static func read(_ bytes: [UInt8], name: String) -> LoadedRecipe {
        guard let root = try? parseYAML(bytes) else { preconditionFailure("the recipe \(name) is not YAML") }
        return loadRecipe(configurationNode(root), name: name)
    }

    /// Every file in `data`.
    package static let files: [(name: String, bytes: [UInt8])] = [
        ("alpine", PackageResources.alpine_yaml), ("cargo", PackageResources.cargo_yaml),
        ("composer", PackageResources.composer_yaml), ("conda", PackageResources.conda_yaml),
        ("debian", PackageResources.debian_yaml), ("git-lfs", PackageResources.git_lfs_yaml),
        ("github", PackageResources.github_yaml), ("go", PackageResources.go_yaml),
        ("huggingface", PackageResources.huggingface_yaml), ("maven", PackageResources.maven_yaml),
        ("nix", PackageResources.nix_yaml), ("npm", PackageResources.npm_yaml),
        ("nuget", PackageResources.nuget_yaml), ("oci", PackageResources.oci_yaml),
        ("python", PackageResources.python_yaml), ("rpm", PackageResources.rpm_yaml),
        ("rubygems", PackageResources.rubygems_yaml), ("terraform", PackageResources.terraform_yaml),
        ("vscode", PackageResources.vscode_yaml),
    ]
}

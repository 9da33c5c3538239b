#!/usr/bin/env bash
# Rebuild ../static/vendor from the locked packages: needs node and npm, nothing of it is needed at run time.
set -euo pipefail
cd "$(dirname "$0")"
npm ci --no-audit --no-fund --ignore-scripts
out=../static/vendor
mkdir -p "$out"
for entry in charts text; do
    npx --no-install esbuild "$entry.js" --bundle --minify --format=esm --target=es2022 --legal-comments=none \
        --outfile="$out/$entry.js"
done
cp node_modules/axe-core/axe.min.js ../../../tests/integrations/web/axe.min.js
{
    echo "Licences of the packages bundled in this folder."
    for package in $(npm ls --omit=dev --all --parseable | tail -n +2 | sort -u); do
        name=$(node -p "var p=require('$package/package.json'); p.name+' '+p.version+' ('+(p.license||'see below')+')'")
        printf '\n==== %s\n' "$name"
        cat "$package"/LICEN[CS]E* 2> /dev/null || true
    done
} > "$out/LICENCES.txt"

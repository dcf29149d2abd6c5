#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks a page of `btrfs-walk report` without a browser, and prints its text, a line an element.

Usage: check_page.py FILE

Tags must match, only known elements and attributes may occur, nothing may be loaded or run, ids are
unique, the style has the hash that the page allows, and the labels of directories fit in their
boxes.
"""
import base64
import hashlib
import html
import re
import sys
from html.parser import HTMLParser

VOID = {'meta', 'input'}
SHAPES = {'svg', 'g', 'rect', 'path', 'text', 'title', 'desc'}
ELEMENTS = VOID | SHAPES | set(
    'html head style body header main footer section h1 h2 h3 p span b strong code pre div table '
    'thead tbody tr th td dl dt dd ul li label details summary figure figcaption'.split())
ATTRIBUTES = set(
    'lang charset http-equiv content name id class for type checked viewbox role aria-labelledby '
    'aria-label aria-hidden transform width height x y rx fill fill-opacity stroke stroke-width '
    'shape-rendering opacity font-size d preserveaspectratio'.split())


class Page(HTMLParser):
    """The page, held against these lists."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.policy, self.style = [], set(), '', ''

    def handle_starttag(self, tag, attrs):
        assert tag in ELEMENTS, f'element {tag}'
        values = dict(attrs)
        assert set(values) <= ATTRIBUTES, f'attributes of {tag}: {set(values) - ATTRIBUTES}'
        if 'id' in values:
            assert values['id'] not in self.ids, f'id {values["id"]} twice'
            self.ids.add(values['id'])
        if values.get('http-equiv'):
            self.policy = values['content']
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in SHAPES, f'<{tag}/>'
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f'</{tag}> does not match'

    def handle_data(self, data):
        if self.open and self.open[-1] == 'style':
            self.style += data
        elif data.strip():
            assert all(c >= ' ' or c in '\n\t' for c in data), f'control bytes: {data!r}'
            print(data.strip())


with open(sys.argv[1], 'rb') as file:
    source = file.read().decode('utf-8')
page = Page()
page.feed(source)
page.close()
assert source.startswith('<!DOCTYPE html>\n') and not page.open, 'it is cut off'
digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
assert page.policy.startswith("default-src 'none'; "), 'anything may be loaded'
assert f"style-src 'sha256-{digest}'" in page.policy, 'the style has another hash'
assert '://' not in source, 'an address'
LABEL = r'width="([0-9.]+)" [^>]*fill-opacity="[.0-9]+"/><text [^>]*>([^<]*)</text>'
for width, label in re.findall(LABEL, source):
    assert 8 * len(html.unescape(label)) <= float(width), f'a label leaves its box: {label}'

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The words of find(1): its tests have one dash, and are taken as the options of the same names.
 * Only whole words are, and only where no option before them wants an argument; so -la stays what
 * it is. What find does besides testing is explained.
 */
#include "cli/common/find_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Words with two dashes. They are constants, but getopt_long() changes no word. Three dashes: with
 * one and with two dashes it does not mean quite the same (selection.c). */
static const struct {
    const char *word, *option;
} words[] = {
    {"!", "--not"},
    {"(", "--open"},
    {")", "--close"},
    {"-amin", "--amin"},
    {"-and", "--and"},
    {"-atime", "--atime"},
    {"-cmin", "--cmin"},
    {"-ctime", "--ctime"},
    {"-empty", "--empty"},
    {"-gid", "--gid"},
    {"-group", "--group"},
    {"-iname", "---iname"},
    {"-inum", "--inum"},
    {"-ipath", "--ipath"},
    {"-iregex", "--iregex"},
    {"-iwholename", "--ipath"},
    {"-links", "--links"},
    {"-maxdepth", "--maxdepth"},
    {"-mindepth", "--mindepth"},
    {"-mmin", "--mmin"},
    {"-mtime", "--mtime"},
    {"-name", "---name"},
    {"-newer", "--newer"},
    {"-newerBt", "--newerBt"},
    {"-newerat", "--newerat"},
    {"-newerct", "--newerct"},
    {"-newermt", "--newermt"},
    {"-not", "--not"},
    {"-or", "--or"},
    {"-path", "--path"},
    {"-perm", "--perm"},
    {"-print0", "--print0"},
    {"-regex", "--regex"},
    {"-size", "--size"},
    {"-type", "---type"},
    {"-uid", "--uid"},
    {"-user", "--user"},
    {"-wholename", "--wholename"},
};

static bool is_option(const char *name, const struct option *names)
{
    while (names->name && strcmp(names->name, name) != 0)
        names++;
    return names->name;
}

static const char *find_word(const char *word)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, word) == 0)
            return words[i].option;
    return NULL;
}

/* -o and -a are operators where the command has no such letter, or one whose argument cannot be the
 * test that follows. */
static const char *find_letter(const char *word, const char *next, const char *letters)
{
    const char *letter = strchr(letters, word[1]);
    const bool is_free = !letter || (letter[1] == ':' && next && find_word(next));
    return strcmp(word, "-o") == 0 && is_free   ? "--or"
           : strcmp(word, "-a") == 0 && is_free ? "--and"
                                                : NULL;
}

/* What a word stands for, if the command has that; else NULL. `next`: the word after it, or NULL.
 */
static const char *option_of(const char *word, const char *next, const char *letters,
                             const struct option *names)
{
    const char *option = find_word(word);
    if (!option && word[0] == '-' && word[1])
        option = find_letter(word, next, letters);
    return option && is_option(option + 2, names) ? option : NULL;
}

/* Whether the next word is the argument of the last of these short options. */
static bool cluster_wants_argument(const char *cluster, const char *letters)
{
    for (; *cluster; cluster++) {
        const char *letter = *cluster == ':' ? NULL : strchr(letters, *cluster);
        if (letter && letter[1] == ':' && letter[2] != ':')
            return !cluster[1];
    }
    return false;
}

static bool wants_argument(const char *word, const char *letters, const struct option *names)
{
    if (word[0] != '-' || word[1] != '-')
        return word[0] == '-' && cluster_wants_argument(word + 1, letters);
    while (names->name && strcmp(names->name, word + 2) != 0)
        names++;
    return names->name && names->has_arg == required_argument;
}

const char *cmd_find_advice(const char *word)
{
    static const struct {
        const char *word, *advice;
    } others[] = {
        {"-delete", "images are never changed"},
        {"-exec", "pipe -0 into 'xargs -0'"},
        {"-fprint", "send stdout to a file"},
        {"-ls", "lines like those of ls are --long"},
        {"-ok", "pipe -0 into 'xargs -0'"},
        {"-print", "paths are printed anyway"},
        {"-printf", "-o and --json print what is known of files"},
        {"-prune", "--exclude leaves out directories with all that is in them"},
        {"-regextype", "regular expressions are always posix-extended"},
        {"-xdev", "--nested=no stays in one subvolume"},
        {"-mount", "--nested=no stays in one subvolume"},
        {"-anewer", "times are compared with dates: --newerat"},
        {"-cnewer", "times are compared with dates: --newerct"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].word, word) == 0)
            return others[i].advice;
    return NULL;
}

const char *cmd_find_words(int argc, char **argv, const char *letters, const struct option *names)
{
    const char *other = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char *option = option_of(argv[i], argv[i + 1], letters, names);
        if (option)
            argv[i] = (char *)(size_t)option;
        else if (!other && cmd_find_advice(argv[i]))
            other = argv[i];
        i += wants_argument(argv[i], letters, names);
    }
    return other;
}
